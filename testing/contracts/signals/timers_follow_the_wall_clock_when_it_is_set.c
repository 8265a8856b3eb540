/*
 * timer_settime(2), timerfd_create(2): setting CLOCK_REALTIME fires what waits for a reading that has passed, and
 * leaves alone what was to run for some time.
 */
#include "../contract.h"
#include <sys/timerfd.h>

static timer_t timer;
static sigset_t set;

static void set_clock(long long seconds)
{
    struct timespec now;
    need(clock_gettime(CLOCK_REALTIME, &now) == 0);
    now.tv_sec += seconds;
    need(clock_settime(CLOCK_REALTIME, &now) == 0);
}

static void arm(int flags, long long seconds, long nanos)
{
    struct itimerspec plan = { { 0, 0 }, { seconds, nanos } };
    struct timespec now = { 0, 0 };
    if (flags & TIMER_ABSTIME)
        need(clock_gettime(CLOCK_REALTIME, &now) == 0);
    plan.it_value.tv_sec += now.tv_sec;
    need(timer_settime(timer, flags, &plan, NULL) == 0);
}

static const char *arrives(long milliseconds)
{
    struct timespec limit = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
    return signal_name(sigtimedwait(&set, NULL, &limit));
}

int main(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    need(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
    arm(TIMER_ABSTIME, 1000, 0);
    set_clock(1001);
    show_text("a reading that has passed", arrives(3000));
    arm(0, 0, 200000000);
    set_clock(-1001);
    show_text("a while, with the clock set back", arrives(3000));
    section("timerfd");
    int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    struct itimerspec plan = { { 0, 0 }, { 0, 0 } };
    struct timespec now;
    uint64_t count;
    need(clock_gettime(CLOCK_REALTIME, &now) == 0);
    plan.it_value.tv_sec = now.tv_sec + 1000;
    RESULT(timerfd_settime(fd, TFD_TIMER_ABSTIME, &plan, NULL));
    struct pollfd wait = { fd, POLLIN, 0 };
    RESULT(poll(&wait, 1, 20));
    set_clock(1001);
    RESULT(poll(&wait, 1, 3000));
    RESULT(read(fd, &count, 8));
    RESULT(timerfd_settime(fd, TFD_TIMER_ABSTIME | 2 /* TFD_TIMER_CANCEL_ON_SET */, &plan, NULL));
    RESULT(poll(&wait, 1, 3000));
    RESULT(read(fd, &count, 8));
    set_clock(-1001);
    plan.it_value.tv_sec = now.tv_sec + 1000;
    RESULT(timerfd_settime(fd, TFD_TIMER_ABSTIME | 2, &plan, NULL));
    set_clock(1);
    RESULT(poll(&wait, 1, 3000));
    RESULT(read(fd, &count, 8));
    set_clock(-1);
    return 0;
}
