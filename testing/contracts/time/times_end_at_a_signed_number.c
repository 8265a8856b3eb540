/*
 * setitimer(2), timerfd_settime(2), alarm(2): a time beyond the farthest is the farthest, of 2^63 - 1 nanoseconds;
 * alarm tells what was left of it as an unsigned int.
 */
#include "../contract.h"
#include <stdint.h>
#include <sys/time.h>
#include <sys/timerfd.h>

int main(void)
{
    struct itimerval far = { { INT64_MAX, 999999 }, { INT64_MAX, 999999 } }, old;
    RESULT(setitimer(ITIMER_REAL, &far, NULL));
    RESULT(getitimer(ITIMER_REAL, &old));
    show("interval", old.it_interval.tv_sec);
    show("left, in millions of seconds", old.it_value.tv_sec / 1000000);
    unsigned left = alarm(7);
    show("alarm, in millions of seconds", left / 1000000);
    RESULT(alarm(0));
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec spec = { { INT64_MAX, 999999999 }, { INT64_MAX, 999999999 } }, got;
    RESULT(timerfd_settime(fd, 0, &spec, NULL));
    RESULT(timerfd_gettime(fd, &got));
    show("interval of a timerfd", got.it_interval.tv_sec);
    show("left of it, in millions of seconds", got.it_value.tv_sec / 1000000);
    return 0;
}
