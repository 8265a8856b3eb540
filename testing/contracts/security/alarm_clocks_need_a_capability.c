/*
 * timer_create(2), timerfd_create(2), clock_nanosleep(2): CLOCK_REALTIME_ALARM and CLOCK_BOOTTIME_ALARM wake the
 * machine, which needs CAP_WAKE_ALARM; they can be read by all.
 */
#include "security.h"
#include <sys/timerfd.h>

static int make(clockid_t clock)
{
    timer_t id;
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    return syscall(SYS_timer_create, clock, &event, &id);
}

static int nap(clockid_t clock, int flags)
{
    struct timespec none = { 0, 1 };
    return syscall(SYS_clock_nanosleep, clock, flags, &none, NULL);
}

static int inherited;

static int attempt(void *unused)
{
    static const struct { clockid_t clock; const char *name; } clocks[] = {
        { CLOCK_REALTIME_ALARM, "CLOCK_REALTIME_ALARM" }, { CLOCK_BOOTTIME_ALARM, "CLOCK_BOOTTIME_ALARM" },
        { CLOCK_BOOTTIME, "CLOCK_BOOTTIME" },
    };
    struct timespec now;
    struct itimerspec soon = { .it_value = { 100, 0 } };
    for (size_t at = 0; at < COUNT_OF(clocks); at++) {
        section(clocks[at].name);
        clockid_t clock = clocks[at].clock;
        OUTCOME(make(clock));
        OUTCOME(timerfd_create(clock, 0));
        OUTCOME(nap(clock, 0));
        OUTCOME(nap(clock, TIMER_ABSTIME));
        OUTCOME(clock_gettime(clock, &now));
        OUTCOME(clock_settime(clock, &now));
    }
    OUTCOME(timerfd_settime(inherited, 0, &soon, NULL));
    OUTCOME(timerfd_gettime(inherited, &soon));
    return unused != NULL;
}

int main(void)
{
    inherited = timerfd_create(CLOCK_REALTIME_ALARM, 0);
    show("root makes one", inherited != -1);
    as_nobody(attempt, NULL);
    section("root");
    attempt(NULL);
    return 0;
}
