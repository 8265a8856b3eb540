/* getrusage(2), times(2): time spent computing is user time, time spent in calls is system time; neither runs back. */
#include "../contract.h"
#include <sys/resource.h>
#include <sys/times.h>

static long long micros(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

static void usage(long long *user, long long *system)
{
    struct rusage now;
    need(getrusage(RUSAGE_SELF, &now) == 0);
    check(micros(now.ru_utime) >= *user && micros(now.ru_stime) >= *system, "time does not run back");
    *user = micros(now.ru_utime), *system = micros(now.ru_stime);
}

int main(void)
{
    long long user = 0, system = 0, user_before, system_before;
    static char zeros[65536];
    usage(&user, &system);
    user_before = user, system_before = system;
    volatile unsigned sum = 0;
    for (long long end = elapsed_ms() + 400; elapsed_ms() < end;)
        for (unsigned i = 0; i < 200000; i++)
            sum += i;
    usage(&user, &system);
    check(user - user_before > 3 * (system - system_before), "computing is mostly user time");
    user_before = user, system_before = system;
    int zero = open("/dev/zero", O_RDONLY);
    for (long long end = elapsed_ms() + 400; elapsed_ms() < end;)
        for (int i = 0; i < 50; i++)
            need(read(zero, zeros, sizeof zeros) == sizeof zeros);
    usage(&user, &system);
    check(system - system_before > 3 * (user - user_before), "reading zeros is mostly system time");
    struct tms ticks;
    RESULT(times(&ticks) != -1);
    check(ticks.tms_utime > 0 && ticks.tms_stime > 0, "times tells both");
    return 0;
}
