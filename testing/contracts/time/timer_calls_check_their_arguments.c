/*
 * timer_create(2), timer_settime(2), clock_nanosleep(2), clock_getres(2), setitimer(2): clocks, times and pointers
 * that are refused, and with which error when a call makes two mistakes.
 */
#include "contract.h"

int main(void)
{
    int id = -1;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 }, strange = { .sigev_notify = 77 },
        high = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65 }, none = { .sigev_notify = SIGEV_NONE },
        zero = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = 0 },
        thread = { .sigev_notify = 4, .sigev_signo = SIGUSR1 };
    section("timer_create");
    RESULT(syscall(SYS_timer_create, 77, &event, &id));
    RESULT(syscall(SYS_timer_create, -1, &event, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &strange, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &high, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &zero, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &thread, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, BAD_POINTER, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, BAD_POINTER));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC_RAW, &event, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_REALTIME_COARSE, &event, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_BOOTTIME, &event, &id));
    RESULT(syscall(SYS_timer_delete, id));
    RESULT(syscall(SYS_timer_delete, id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &id));
    section("timer_settime");
    struct itimerspec fine = { .it_value = { 1, 0 } }, bad = { .it_value = { 1, 1000000000 } };
    struct itimerspec negative = { .it_value = { -1, 0 } },
        interval = { .it_interval = { 0, -1 }, .it_value = { 1, 0 } }, old;
    RESULT(syscall(SYS_timer_settime, id, 0, &fine, NULL));
    RESULT(syscall(SYS_timer_settime, id, 0, &bad, NULL));
    RESULT(syscall(SYS_timer_settime, id, 0, &negative, NULL));
    RESULT(syscall(SYS_timer_settime, id, 0, &interval, NULL));
    RESULT(syscall(SYS_timer_settime, id, 0, NULL, &old));
    RESULT(syscall(SYS_timer_settime, id, 0, BAD_POINTER, NULL));
    RESULT(syscall(SYS_timer_settime, id, 0, &fine, BAD_POINTER));
    RESULT(syscall(SYS_timer_settime, 999, 0, &bad, NULL));
    RESULT(syscall(SYS_timer_settime, 999, 0, &fine, NULL));
    RESULT(syscall(SYS_timer_settime, -1, 0, &fine, NULL));
    RESULT(syscall(SYS_timer_gettime, id, BAD_POINTER));
    RESULT(syscall(SYS_timer_gettime, 999, &old));
    RESULT(syscall(SYS_timer_getoverrun, 999));
    RESULT(syscall(SYS_timer_getoverrun, id));
    section("clock_nanosleep, nanosleep");
    struct timespec ok = { 0, 1 }, wrong = { 0, 1000000000 }, minus = { -1, 0 };
    RESULT(syscall(SYS_clock_nanosleep, 77, 0, &ok, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &ok, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_RAW, 0, &ok, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_REALTIME_COARSE, 0, &ok, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_BOOTTIME, 0, &ok, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wrong, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &minus, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, BAD_POINTER, NULL));
    RESULT(syscall(SYS_clock_nanosleep, 77, 0, BAD_POINTER, NULL));
    RESULT(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ok, BAD_POINTER));
    RESULT(syscall(SYS_nanosleep, &wrong, NULL));
    RESULT(syscall(SYS_nanosleep, BAD_POINTER, NULL));
    section("clocks");
    RESULT(syscall(SYS_clock_gettime, 77, &ok));
    RESULT(syscall(SYS_clock_gettime, 77, BAD_POINTER));
    RESULT(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, BAD_POINTER));
    RESULT(syscall(SYS_clock_getres, CLOCK_MONOTONIC, NULL));
    RESULT(syscall(SYS_clock_getres, 77, NULL));
    RESULT(syscall(SYS_clock_getres, CLOCK_MONOTONIC, BAD_POINTER));
    RESULT(syscall(SYS_clock_settime, CLOCK_MONOTONIC, &ok));
    RESULT(syscall(SYS_clock_settime, 77, &ok));
    RESULT(syscall(SYS_clock_settime, CLOCK_REALTIME, &wrong));
    RESULT(syscall(SYS_clock_settime, CLOCK_REALTIME, BAD_POINTER));
    RESULT(syscall(SYS_settimeofday, &(struct timeval){ 1, 1000000 }, NULL));
    RESULT(syscall(SYS_settimeofday, BAD_POINTER, NULL));
    RESULT(syscall(SYS_gettimeofday, BAD_POINTER, NULL));
    section("setitimer");
    struct itimerval timer = { .it_value = { 0, 1000000 } }, below = { .it_value = { -1, 0 } }, off = { 0 };
    RESULT(syscall(SYS_setitimer, 3, &off, NULL));
    RESULT(syscall(SYS_setitimer, 3, &timer, NULL));
    RESULT(syscall(SYS_setitimer, ITIMER_REAL, &timer, NULL));
    RESULT(syscall(SYS_setitimer, ITIMER_REAL, &below, NULL));
    RESULT(syscall(SYS_setitimer, ITIMER_REAL, BAD_POINTER, NULL));
    RESULT(syscall(SYS_setitimer, ITIMER_REAL, NULL, NULL));
    RESULT(syscall(SYS_setitimer, ITIMER_REAL, &off, BAD_POINTER));
    RESULT(syscall(SYS_getitimer, 3, &off));
    RESULT(syscall(SYS_getitimer, ITIMER_REAL, BAD_POINTER));
    RESULT(syscall(SYS_times, BAD_POINTER));
    return 0;
}
