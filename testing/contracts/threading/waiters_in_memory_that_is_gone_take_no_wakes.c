/*
 * futex(2): a waiter in shared memory waits at that memory. When the memory is unmapped for good and other shared
 * memory takes its pages, wakes there reach those who wait there, and none is lost to the old waiter.
 * contract: timeout=30
 */
#include "../contract.h"
#include <linux/futex.h>

static _Atomic int arrived;

static void *sleeper(void *word)
{
    struct timespec limit = { 4, 0 };
    arrived = 1;
    long result = syscall(SYS_futex, word, FUTEX_WAIT, 0, &limit, NULL, 0);
    return (void *)(long)(result == 0 ? 0 : errno);
}

static pthread_t start(int *word)
{
    pthread_t thread;
    arrived = 0;
    need(pthread_create(&thread, NULL, sleeper, word) == 0);
    while (!arrived)
        sched_yield();
    sleep_ms(30);
    return thread;
}

static int *shared_word(void) { return shared_page(); }

int main(void)
{
    int stolen = 0, lost = 0, refused = 0;
    for (int round = 0; round < 3; round++) {
        int *old = shared_word();
        *old = 0;
        pthread_t left_behind = start(old);
        need(munmap(old, PAGE) == 0);
        int *words[32];
        pthread_t waiters[32];
        for (int at = 0; at < 32; at++) {
            words[at] = shared_word();
            *words[at] = 0;
        }
        for (int at = 0; at < 32; at++)
            need(pthread_create(&waiters[at], NULL, sleeper, words[at]) == 0);
        sleep_ms(100);
        for (int at = 0; at < 32; at++)
            refused += syscall(SYS_futex, words[at], FUTEX_WAKE, 1, NULL, NULL, 0) != 1;
        for (int at = 0; at < 32; at++) {
            void *ended;
            need(pthread_join(waiters[at], &ended) == 0);
            lost += ended != NULL;
        }
        void *ended;
        need(pthread_join(left_behind, &ended) == 0);
        stolen += (long)ended != ETIMEDOUT;
        for (int at = 0; at < 32; at++)
            munmap(words[at], PAGE);
    }
    show("wakes that woke none", refused);
    show("waiters that missed their wake", lost);
    show("waiters woken by a wake elsewhere", stolen);
    return 0;
}
