/*
 * futex(2): what each operation says of addresses that are not aligned, not mapped, not writable or not the program's,
 * of counts that are not positive, and of flags that do not go with it.
 */
#include "../contract.h"
#include <linux/futex.h>

static long futex(void *word, int op, unsigned value, long timeout, void *second, unsigned third)
{
    return syscall(SYS_futex, word, op, value, timeout, second, third);
}

#define ADD(value) (FUTEX_OP(FUTEX_OP_ADD, value, FUTEX_OP_CMP_EQ, 0))

static unsigned good, second;

static void every(void *word, int flag)
{
    struct timespec at_once = { 0, 0 };
    RESULT(futex(word, FUTEX_WAIT | flag, 0, (long)&at_once, NULL, 0));
    RESULT(futex(word, FUTEX_WAIT | flag, 7, (long)&at_once, NULL, 0));
    RESULT(futex(word, FUTEX_WAIT_BITSET | flag, 7, 0, NULL, 1));
    RESULT(futex(word, FUTEX_WAKE | flag, 1, 0, NULL, 0));
    RESULT(futex(word, FUTEX_WAKE_BITSET | flag, 1, 0, NULL, 1));
    RESULT(futex(word, FUTEX_REQUEUE | flag, 1, 1, &second, 0));
    RESULT(futex(word, FUTEX_CMP_REQUEUE | flag, 1, 1, &second, 9));
    RESULT(futex(&good, FUTEX_REQUEUE | flag, 1, 1, word, 0));
    RESULT(futex(word, FUTEX_WAKE_OP | flag, 1, 1, &second, ADD(0)));
    RESULT(futex(&good, FUTEX_WAKE_OP | flag, 1, 1, word, ADD(0)));
    RESULT(futex(&good, FUTEX_CMP_REQUEUE_PI | flag, 1, 1, word, 9));
    RESULT(futex(&good, FUTEX_WAIT_REQUEUE_PI | flag, 9, 0, word, 0));
    RESULT(futex(word, FUTEX_UNLOCK_PI | flag, 0, 0, NULL, 0));
}

static void both(const char *title, void *word)
{
    say("-- %s, private", title);
    every(word, FUTEX_PRIVATE_FLAG);
    say("-- %s, shared", title);
    every(word, 0);
}

static int sleeps(void *word)
{
    futex(word, FUTEX_WAIT, 0, 0, NULL, 0);
    return 0;
}

int main(void)
{
    char *page = fresh_pages(2);
    unsigned *common = shared_page();
    both("not aligned", (char *)&good + 1);
    both("the kernel's", (void *)0xffff888000000000UL);
    both("at the end of all", (void *)0x7ffffffffffcUL);
    need(munmap(page + PAGE, PAGE) == 0);
    both("not mapped", page + PAGE);
    need(mprotect(page, PAGE, PROT_NONE) == 0);
    both("without access", page);
    need(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
    *(unsigned *)page = 0;
    need(mprotect(page, PAGE, PROT_READ) == 0);
    both("readable only", page);
    section("counts and bits");
    RESULT(futex(&good, FUTEX_WAIT_BITSET, 0, 0, NULL, 0));
    RESULT(futex(&good, FUTEX_WAKE_BITSET, 1, 0, NULL, 0));
    RESULT(futex(&good, FUTEX_REQUEUE, -1, 1, &second, 0));
    RESULT(futex(&good, FUTEX_REQUEUE, 1, -1, &second, 0));
    RESULT(futex(&good, FUTEX_CMP_REQUEUE, INT_MIN, 1, &second, 0));
    RESULT(futex(&good, FUTEX_WAKE_OP, 1, 1, &second, FUTEX_OP(7, 1, 0, 0)));
    RESULT(futex(&good, FUTEX_WAKE_OP, 1, 1, &second, FUTEX_OP(0, 1, 9, 0)));
    show("second", second);
    section("flags and times");
    struct timespec past = { 1, 0 }, wrong = { 0, 1000000000 };
    RESULT(futex(&good, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 0, (long)&past, NULL, 0));
    RESULT(futex(&good, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, (long)&past, NULL, 1));
    RESULT(futex(&good, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, 0, NULL, 0));
    RESULT(futex(&good, FUTEX_LOCK_PI | FUTEX_CLOCK_REALTIME, 1, 0, NULL, 0));
    RESULT(futex(&good, FUTEX_UNLOCK_PI | FUTEX_CLOCK_REALTIME, 1, 0, NULL, 0));
    RESULT(futex(&good, FUTEX_WAIT, 1, (long)&wrong, NULL, 0));
    RESULT(futex(&good, FUTEX_WAIT, 1, (long)BAD_POINTER, NULL, 0));
    RESULT(futex(&good, FUTEX_WAKE, 1, (long)BAD_POINTER, NULL, 0));
    RESULT(futex(&good, FUTEX_FD, 1, 0, NULL, 0));
    RESULT(futex(&good, 77, 1, 0, NULL, 0));
    section("how many are woken");
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        children[i] = spawn(sleeps, common);
    sleep_ms(100);
    RESULT(futex(common, FUTEX_WAKE, 0, 0, NULL, 0));
    RESULT(futex(common, FUTEX_WAKE, -1, 0, NULL, 0));
    RESULT(futex(common, FUTEX_WAKE_OP, 0, 0, common + 1, ADD(1)));
    show("changed", common[1]);
    RESULT(futex(common, FUTEX_WAKE, INT_MAX, 0, NULL, 0));
    for (int i = 0; i < 4; i++)
        reap(children[i]);
    return 0;
}
