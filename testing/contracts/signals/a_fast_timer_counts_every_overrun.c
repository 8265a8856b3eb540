/*
 * timer_getoverrun(2): while the signal of a timer waits, every further expiry counts, however short the interval; the
 * count of the last signal taken stays until the next, or until the timer is set again.
 */
#include "../contract.h"

#define RUN_MS 20

static timer_t timer;

/* Whether a run counts what went by: no more than there can be, and half of it at least. */
static int counts(long interval_ns)
{
    struct itimerspec times = { .it_interval = { 0, interval_ns }, .it_value = { 0, interval_ns } };
    struct itimerspec off = { 0 };
    struct timespec start, end, now = { 0 };
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    clock_gettime(CLOCK_MONOTONIC, &start);
    need(timer_settime(timer, 0, &times, NULL) == 0);
    sleep_ms(RUN_MS);
    need(sigwaitinfo(&set, &info) == SIGUSR1);
    clock_gettime(CLOCK_MONOTONIC, &end);
    long counted = timer_getoverrun(timer);
    need(timer_settime(timer, 0, &off, NULL) == 0);
    /*
     * The expiry after the signal was taken has sent another, which would be the first of the next run and count for
     * it.
     */
    sigtimedwait(&set, NULL, &now);
    long elapsed = (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec;
    return info.si_overrun == counted && counted <= elapsed / interval_ns
        && counted >= RUN_MS * 1000000L / interval_ns / 2;
}

/* One run of several is enough: a busy host may take the clock from under one. */
static int counts_in_the_end(long interval_ns)
{
    for (int run = 0; run < 8; run++)
        if (counts(interval_ns))
            return 1;
    return 0;
}

int main(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    need(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    check(counts_in_the_end(10000), "every 10 us");
    check(counts_in_the_end(1000), "every 1 us");
    check(counts_in_the_end(2), "every 2 ns");
    say("after setting it again %d", timer_getoverrun(timer));
    return 0;
}
