/*
 * futex(2): to wake the waiters of a word, and to take, leave or give up a futex with an owner, costs about the same
 * whether few or thousands of threads wait for other futexes with owners.
 * contract: timeout=60
 */
#include "../contract.h"
#include <linux/futex.h>

#define OTHERS 2500
#define ATTEMPTS 7
#define CALLS 300

static unsigned busy, word, own, started;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long operate(unsigned *at, int operation)
{
    return syscall(SYS_futex, at, operation | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

static void *wait_for_busy(void *unused)
{
    __atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);
    operate(&busy, FUTEX_LOCK_PI);
    return unused;
}

static long long shortest(void (*body)(void))
{
    long long best = LLONG_MAX;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        long long began = now_ns();
        for (int at = 0; at < CALLS; at++)
            body();
        long long took = now_ns() - began;
        best = took < best ? took : best;
    }
    return best;
}

static void wakes(void)
{
    need(operate(&word, FUTEX_WAKE) == 0);
}

static void takes_and_leaves(void)
{
    need(operate(&own, FUTEX_LOCK_PI) == 0 && operate(&own, FUTEX_UNLOCK_PI) == 0);
}

int main(void)
{
    pthread_attr_t small;
    pthread_t thread;
    need(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 16384) == 0);
    need(operate(&busy, FUTEX_LOCK_PI) == 0);
    need(pthread_create(&thread, &small, wait_for_busy, NULL) == 0);
    sleep_ms(50);
    long long few_wakes = shortest(wakes), few_takes = shortest(takes_and_leaves);
    for (int at = 1; at < OTHERS; at++)
        need(pthread_create(&thread, &small, wait_for_busy, NULL) == 0);
    while (__atomic_load_n(&started, __ATOMIC_ACQUIRE) < OTHERS)
        sched_yield();
    sleep_ms(200);
    check(shortest(wakes) < 6 * few_wakes, "a wake-up is not six times dearer");
    check(shortest(takes_and_leaves) < 6 * few_takes, "taking and leaving is not six times dearer");
    _exit(0);
}
