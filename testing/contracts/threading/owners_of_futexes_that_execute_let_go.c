/*
 * futex(2), priority-inheritance futexes: a waiter gets a futex whose owner ends or executes another program, marked
 * FUTEX_OWNER_DIED, by whichever thread and over whichever memory it waits: what is written is the waiter's own word.
 */
#include "../contract.h"
#include <linux/futex.h>

#define LATER 2500

static int *shared, *own;

static long pi(int *word, int op, long milliseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    return syscall(SYS_futex, word, op, 0, milliseconds ? &until : NULL, NULL, 0);
}

static pid_t self(void) { return syscall(SYS_gettid); }

/* Waits for the word and says how it came by it. */
static int waiter(int *word, int private)
{
    long long began = elapsed_ms();
    long got = pi(word, FUTEX_LOCK_PI | private, 8000);
    int error = errno, value = *word;
    say("the waiter gets %s%s", got == 0 ? "it" : errno_name(error),
        elapsed_ms() - began < LATER - 500 ? "" : ", but late");
    if (got == 0) {
        int owner = value & FUTEX_TID_MASK;
        say("its word names %s", owner == self() ? "it" : owner ? "another" : "none");
        check(value & FUTEX_OWNER_DIED, "the word is marked: its owner died");
        RESULT(pi(word, FUTEX_UNLOCK_PI | private, 0));
        show("the word afterwards", *word);
    }
    return 0;
}

static int shared_waiter(void *unused) { return waiter(shared, 0) + (unused != NULL); }

static void run_later(void)
{
    execl("/proc/self/exe", "self", "later", NULL);
    _exit(98);
}

static int executing_owner(void *unused)
{
    need(pi(shared, FUTEX_LOCK_PI, 0) == 0);
    shared[1] = 1;
    sleep_ms(400);
    run_later();
    return unused != NULL;
}

static void *executing_thread(void *unused)
{
    need(pi(shared, FUTEX_LOCK_PI, 0) == 0);
    shared[1] = 1;
    sleep_ms(400);
    run_later();
    return unused;
}

static int owner_in_a_thread(void *unused)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, executing_thread, NULL) == 0);
    for (;;)
        pause();
    return unused != NULL;
}

static int thread_dies(void *unused)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, executing_thread, NULL) == 0);
    while (!shared[1])
        sleep_ms(1);
    sleep_ms(100);
    run_later();
    return unused != NULL;
}

static void over(const char *title, int (*owner)(void *))
{
    section(title);
    shared[0] = shared[1] = 0;
    pid_t owns = spawn(owner, NULL);
    for (int i = 0; !shared[1] && i < 1000; i++)
        sleep_ms(1);
    int status = in_child(shared_waiter, NULL);
    show_status("the waiter", status);
    show_status("the owner", reap(owns));
}

/* The owner forks; its child waits for the word in its own copy of the memory. */
static int owner_that_forks(void *unused)
{
    need(pi(own, FUTEX_LOCK_PI_PRIVATE, 0) == 0);
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        waiter(own, FUTEX_PRIVATE_FLAG);
        shared[1] = 2;
        _exit(0);
    }
    sleep_ms(400);
    return unused != NULL;
}

static void over_copies(void)
{
    section("the waiter has a copy of the owner's memory");
    *own = 0, shared[1] = 0;
    int status = in_child(owner_that_forks, NULL);
    /* What its child says comes first, whichever of the two runs first. */
    for (int i = 0; shared[1] != 2 && i < 9000; i++)
        sleep_ms(1);
    show_status("the owner", status);
    show("the parent's word", *own);
}

static void *private_waiter(void *out)
{
    long got = pi(own, FUTEX_LOCK_PI_PRIVATE, 1500);
    *(int *)out = got == 0 ? 0 : errno;
    return NULL;
}

static void over_another_page(void)
{
    section("another page takes the place of the word's");
    pthread_t thread;
    int error = -1;
    *own = 0;
    RESULT(pi(own, FUTEX_LOCK_PI_PRIVATE, 0));
    need(pthread_create(&thread, NULL, private_waiter, &error) == 0);
    for (int i = 0; !(*(volatile int *)own & FUTEX_WAITERS) && i < 1000; i++)
        sleep_ms(1);
    sleep_ms(100);
    need(mmap(own, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == own);
    RESULT(pi(own, FUTEX_UNLOCK_PI_PRIVATE, 0));
    RESULT(pi(own, FUTEX_TRYLOCK_PI | FUTEX_PRIVATE_FLAG, 0));
    *own = self();
    RESULT(pi(own, FUTEX_UNLOCK_PI_PRIVATE, 0));
    need(pthread_join(thread, NULL) == 0);
    say("the waiter: %s", errno_name(error));
    check((*own & FUTEX_OWNER_DIED) == 0, "the word is not marked");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        sleep_ms(LATER);
        return argv[1][0] == 'l' ? 7 : 8;
    }
    shared = shared_page();
    own = (int *)fresh_pages(1);
    over("the owner executes", executing_owner);
    over("the owner's second thread executes", owner_in_a_thread);
    over("the owner's thread ends by another's exec", thread_dies);
    over_copies();
    over_another_page();
    return 0;
}
