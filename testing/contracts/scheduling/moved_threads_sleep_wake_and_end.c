/*
 * contract: timeout=20
 * sched_setaffinity(2): threads that are moved between processors while they fall asleep, are woken before they do, and
 * end go on, and all of them end. (A thread that another processor was about to take while it still left its own, and
 * that stayed awake after all, stood in a queue while it ran; when it had ended, that processor tried to run it for
 * ever.)
 */
#include "../contract.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>

#define SLEEPERS 4
#define MILLISECONDS 5000

static int words[SLEEPERS];
static volatile int ids[SLEEPERS], over;
static volatile long turns;

static void *sleeps(void *at)
{
    int *word = at;
    ids[word - words] = syscall(SYS_gettid);
    for (int turn = 0; turn < 60; turn++) {
        struct timespec little = { 0, turn % 3 * 1000 };
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &little, NULL, 0);
        __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
        nanosleep(&(struct timespec){ 0, 1 }, NULL);
    }
    ids[word - words] = 0;
    __atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *wakes(void *unused)
{
    (void)unused;
    while (!over)
        for (int i = 0; i < SLEEPERS; i++) {
            __atomic_store_n(&words[i], 1, __ATOMIC_SEQ_CST);
            syscall(SYS_futex, &words[i], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        }
    return NULL;
}

static void *moves(void *unused)
{
    (void)unused;
    for (unsigned turn = 0; !over; turn++)
        for (int i = 0; i < SLEEPERS; i++) {
            unsigned long mask = 1UL << ((turn + i) & 1);
            int id = ids[i];
            if (id)
                syscall(SYS_sched_setaffinity, id, sizeof mask, &mask);
        }
    return NULL;
}

int main(void)
{
    pthread_t waker, mover, sleeper[SLEEPERS];
    need(pthread_create(&waker, NULL, wakes, NULL) == 0);
    need(pthread_create(&mover, NULL, moves, NULL) == 0);
    long started = 0;
    for (long long begin = elapsed_ms(); elapsed_ms() - begin < MILLISECONDS; started += SLEEPERS) {
        for (int i = 0; i < SLEEPERS; i++)
            need(pthread_create(&sleeper[i], NULL, sleeps, &words[i]) == 0);
        for (int i = 0; i < SLEEPERS; i++)
            need(pthread_join(sleeper[i], NULL) == 0);
    }
    over = 1;
    need(pthread_join(waker, NULL) == 0 && pthread_join(mover, NULL) == 0);
    check(turns == started, "all threads ended");
    return 0;
}
