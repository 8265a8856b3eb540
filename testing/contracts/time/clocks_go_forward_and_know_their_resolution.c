/*
 * clock_gettime(2): the monotonic clocks never go back, coarse clocks lag by a tick at most, unknown clocks are
 * EINVAL.
 */
#include "../contract.h"

static long long now(clockid_t clock)
{
    struct timespec time;
    need(clock_gettime(clock, &time) == 0);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void)
{
    clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME,
                           CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID };
    for (size_t c = 0; c < COUNT_OF(clocks); c++) {
        long long last = now(clocks[c]);
        int back = 0;
        for (int i = 0; i < 2000; i++) {
            long long next = now(clocks[c]);
            back += next < last;
            last = next;
        }
        struct timespec resolution;
        need(clock_getres(clocks[c], &resolution) == 0);
        say("clock %d: went back %d, resolution %ld ns", clocks[c], back, resolution.tv_nsec);
    }
    long long coarse = now(CLOCK_MONOTONIC_COARSE), fine = now(CLOCK_MONOTONIC);
    check(coarse <= fine && fine - coarse < 1000000000, "the coarse clock is a little behind");
    check(now(CLOCK_BOOTTIME) >= now(CLOCK_MONOTONIC) - 1000000000, "boot time is not behind monotonic time");
    struct timespec time;
    RESULT(syscall(SYS_clock_gettime, 99, &time));
    RESULT(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, BAD_POINTER));
    RESULT(syscall(SYS_clock_getres, 99, &time));
    RESULT(clock_getres(CLOCK_MONOTONIC, NULL));
    return 0;
}
