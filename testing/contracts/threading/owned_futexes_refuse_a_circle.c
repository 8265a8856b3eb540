/*
 * futex(2), FUTEX_LOCK_PI, EDEADLK: a thread is refused a futex whose owner waits, over however many others, for one of
 * its own; and an owner's word that a program changed under its waiters is refused too.
 */
#include "../contract.h"
#include <linux/futex.h>
#include <pthread.h>

enum { THREADS = 5 };

static unsigned words[THREADS];
static volatile int taken;

static long op(unsigned *word, int number)
{
    return syscall(SYS_futex, word, number | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
}

/* Takes its own futex, then waits for the next thread's. */
static void *waits_for_next(void *index)
{
    long at = (long)index;
    need(op(&words[at], FUTEX_LOCK_PI) == 0);
    __sync_fetch_and_add(&taken, 1);
    while (taken < THREADS)
        sleep_ms(1);
    need(op(&words[at + 1], FUTEX_LOCK_PI) == 0);
    need(op(&words[at + 1], FUTEX_UNLOCK_PI) == 0);
    need(op(&words[at], FUTEX_UNLOCK_PI) == 0);
    return NULL;
}

static volatile int holding;

static void *holds(void *word)
{
    need(op(word, FUTEX_LOCK_PI) == 0);
    holding = 1;
    while (holding)
        sleep_ms(1);
    need(op(word, FUTEX_UNLOCK_PI) == 0);
    return NULL;
}

static void *waits(void *word)
{
    RESULT(op(word, FUTEX_LOCK_PI));
    RESULT(op(word, FUTEX_UNLOCK_PI));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    need(op(&words[THREADS - 1], FUTEX_LOCK_PI) == 0);
    for (long i = 0; i < THREADS - 1; i++)
        need(pthread_create(&threads[i], NULL, waits_for_next, (void *)i) == 0);
    while (taken < THREADS - 1)
        sleep_ms(1);
    taken = THREADS;
    sleep_ms(100);
    section("a circle");
    RESULT(op(&words[THREADS - 1], FUTEX_LOCK_PI));
    RESULT(op(&words[0], FUTEX_LOCK_PI));
    RESULT(op(&words[THREADS - 2], FUTEX_LOCK_PI));
    RESULT(op(&words[0], FUTEX_TRYLOCK_PI));
    RESULT(op(&words[THREADS - 1], FUTEX_UNLOCK_PI));
    for (int i = 0; i < THREADS - 1; i++)
        pthread_join(threads[i], NULL);
    RESULT(op(&words[0], FUTEX_LOCK_PI));
    section("another owner's name");
    static unsigned word;
    need(pthread_create(&threads[0], NULL, holds, &word) == 0);
    while (!holding)
        sleep_ms(1);
    need(pthread_create(&threads[1], NULL, waits, &word) == 0);
    while (!(*(volatile unsigned *)&word & FUTEX_WAITERS))
        sleep_ms(1);
    sleep_ms(50);
    unsigned right = word;
    word = (unsigned)syscall(SYS_gettid) | FUTEX_WAITERS;
    RESULT(op(&word, FUTEX_UNLOCK_PI));
    RESULT(op(&word, FUTEX_LOCK_PI));
    word = 0x3ffffffe | FUTEX_WAITERS;
    RESULT(op(&word, FUTEX_LOCK_PI));
    RESULT(op(&word, FUTEX_TRYLOCK_PI));
    word = 0;
    RESULT(op(&word, FUTEX_LOCK_PI));
    word = right;
    holding = 0;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
