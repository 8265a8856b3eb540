/*
 * futex(2), FUTEX_LOCK_PI: a thread that asks for a futex whose owner waits for another owner, and so on, is told of a
 * circle or queued in a time that depends on the length of that row, not on how many threads wait for other futexes.
 * contract: timeout=60
 */
#include "../contract.h"
#include <linux/futex.h>

#define ROW 900
#define OTHERS 2000
#define ATTEMPTS 5

static unsigned words[ROW + 1], busy, started;

static long long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int lock(unsigned *word, struct timespec *until)
{
    return syscall(SYS_futex, word, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, until, NULL, 0) == 0 ? 0 : errno;
}

static void start(void *(*body)(void *), long number)
{
    pthread_t thread;
    pthread_attr_t attributes;
    unsigned before = started;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    need(pthread_create(&thread, &attributes, body, (void *)number) == 0);
    while (__atomic_load_n(&started, __ATOMIC_ACQUIRE) == before)
        sched_yield();
}

static void *wait_for_busy(void *unused)
{
    __atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);
    lock(&busy, NULL);
    return unused;
}

/* Owns the word of its number, and waits for the one before, whose owner waits for the one before that. */
static void *own_and_wait(void *number)
{
    long at = (long)number;
    need(lock(&words[at], NULL) == 0);
    __atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);
    lock(&words[at - 1], NULL);
    return NULL;
}

int main(void)
{
    need(lock(&busy, NULL) == 0 && lock(&words[0], NULL) == 0);
    for (long at = 0; at < OTHERS; at++)
        start(wait_for_busy, at);
    for (long at = 1; at < ROW; at++)
        start(own_and_wait, at);
    sleep_ms(300);
    /* The main thread owns the first word: to ask for the last one closes a circle. */
    say("the row's end: %s", errno_name(lock(&words[ROW - 1], NULL)));
    long long calls = LLONG_MAX, asked = LLONG_MAX;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        long long before = now_us();
        for (int at = 0; at < 20000; at++)
            getppid();
        long long between = now_us();
        lock(&words[ROW - 1], NULL);
        long long after = now_us();
        calls = between - before < calls ? between - before : calls;
        asked = after - between < asked ? after - between : asked;
    }
    check(asked < calls, "asking takes less time than 20,000 trivial calls");
    _exit(0);
}
