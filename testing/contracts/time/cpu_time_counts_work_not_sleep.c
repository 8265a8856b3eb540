/*
 * getrusage(2), times(2), clock_gettime(2): CPU time grows by work, not by sleep, and a waited child's goes to
 * RUSAGE_CHILDREN.
 */
#include "../contract.h"
#include <sys/resource.h>
#include <sys/times.h>

static long long cpu_us(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static void work(long microseconds)
{
    long long end = cpu_us(CLOCK_THREAD_CPUTIME_ID) + microseconds;
    while (cpu_us(CLOCK_THREAD_CPUTIME_ID) < end)
        for (volatile int i = 0; i < 1000; i++)
            ;
}

static int child(void *unused)
{
    (void)unused;
    work(150000);
    return 0;
}

static long long total_us(int who)
{
    struct rusage usage;
    need(getrusage(who, &usage) == 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL
        + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

int main(void)
{
    long long before = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
    sleep_ms(150);
    check(cpu_us(CLOCK_PROCESS_CPUTIME_ID) - before < 100000, "sleeping costs little CPU time");
    before = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
    work(100000);
    check(cpu_us(CLOCK_PROCESS_CPUTIME_ID) - before >= 100000, "working costs CPU time");
    long long children = total_us(RUSAGE_CHILDREN);
    show("children before", children);
    in_child(child, NULL);
    check(total_us(RUSAGE_CHILDREN) >= 100000, "the child's work is counted once it is waited for");
    check(total_us(RUSAGE_SELF) >= 50000, "own work is in rusage");
    struct tms ticks;
    check(times(&ticks) != -1 && ticks.tms_cutime + ticks.tms_cstime >= 5, "times(2) counts the child in ticks");
    struct rusage usage;
    RESULT(getrusage(5, &usage));
    RESULT(getrusage(RUSAGE_SELF, BAD_POINTER));
    need(getrusage(RUSAGE_SELF, &usage) == 0);
    check(usage.ru_maxrss > 0 && usage.ru_minflt > 0, "memory and faults are counted");
    return 0;
}
