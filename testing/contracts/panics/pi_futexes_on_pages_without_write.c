/*
 * futex(2): the operations that change the word of a priority-inheritance futex need its page for writing. On a page
 * that is only readable they fail with EFAULT; on one that a fork made copy-on-write they copy it first.
 */
#include "../contract.h"
#include <linux/futex.h>
#include <pthread.h>

static unsigned *word;

static long op(int number, unsigned value)
{
    return syscall(SYS_futex, word, number | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static int ours(void) { return (*word & FUTEX_TID_MASK) == (unsigned)syscall(SYS_gettid); }

static void readable_only(unsigned value)
{
    need(mprotect(word, PAGE, PROT_READ | PROT_WRITE) == 0);
    *word = value;
    need(mprotect(word, PAGE, PROT_READ) == 0);
    RESULT(op(FUTEX_LOCK_PI, 0));
    RESULT(op(FUTEX_LOCK_PI2, 0));
    RESULT(op(FUTEX_TRYLOCK_PI, 0));
    RESULT(op(FUTEX_UNLOCK_PI, 0));
    check(*word == value, "the word is as it was");
}

static int copies(void *number)
{
    switch ((long)number) {
    case 0:
        RESULT(op(FUTEX_LOCK_PI, 0));
        break;
    case 1:
        RESULT(op(FUTEX_LOCK_PI2, 0));
        break;
    default:
        RESULT(op(FUTEX_TRYLOCK_PI, 0));
    }
    check(ours(), "the child has it");
    return 0;
}

static int unlocks(void *unused)
{
    (void)unused;
    *word = getpid();
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        sleep_ms(50);
        _exit(0);
    }
    RESULT(op(FUTEX_UNLOCK_PI, 0));
    show("word", *word);
    reap(child);
    return 0;
}

/* The list of a thread that ends: one entry, whose lock is on a page of its own. */
static struct robust_list_head head;

static void *ends_with_list(void *lock)
{
    need(syscall(SYS_set_robust_list, &head, sizeof head) == 0);
    *word = (unsigned)syscall(SYS_gettid) | FUTEX_WAITERS;
    if (lock)
        need(mprotect(word, PAGE, PROT_READ) == 0);
    else {
        pid_t child = fork();
        need(child != -1);
        if (child == 0) {
            sleep_ms(50);
            _exit(0);
        }
    }
    return NULL;
}

static void robust(unsigned pi, int readable, const char *title)
{
    static struct robust_list entry;
    pthread_t thread;
    section(title);
    need(mprotect(word, PAGE, PROT_READ | PROT_WRITE) == 0);
    entry.next = &head.list;
    head.list.next = (struct robust_list *)((uintptr_t)&entry | pi);
    head.futex_offset = (long)word - (long)&entry;
    head.list_op_pending = NULL;
    need(pthread_create(&thread, NULL, ends_with_list, readable ? word : NULL) == 0);
    pthread_join(thread, NULL);
    show("owner died", (*word & FUTEX_OWNER_DIED) != 0);
    show("an owner is named", (*word & FUTEX_TID_MASK) != 0);
}

int main(void)
{
    word = (unsigned *)fresh_pages(1);
    section("readable only, not owned");
    readable_only(0);
    section("readable only, ours");
    readable_only(getpid());
    section("readable only, of a thread that is not there");
    readable_only(0x3ffffffe);
    section("no access");
    need(mprotect(word, PAGE, PROT_NONE) == 0);
    RESULT(op(FUTEX_LOCK_PI, 0));
    RESULT(op(FUTEX_TRYLOCK_PI, 0));
    RESULT(op(FUTEX_UNLOCK_PI, 0));
    need(mprotect(word, PAGE, PROT_READ | PROT_WRITE) == 0);
    section("after a fork");
    *word = 0;
    for (long number = 0; number < 3; number++)
        show_status("child", in_child(copies, (void *)number));
    show("the parent's word", *word);
    show_status("child", in_child(unlocks, NULL));
    robust(0, 1, "a list on a page that is only readable");
    robust(1, 1, "the same with the bit of priority inheritance");
    robust(0, 0, "a list after a fork");
    robust(1, 0, "the same with the bit");
    while (wait(NULL) != -1)
        ;
    return 0;
}
