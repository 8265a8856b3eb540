/*
 * clock_getcpuclockid(3), pthread_getcpuclockid(3): a thread's clock counts its own work, the process clock all of
 * it.
 */
#include "../contract.h"

static long long read_clock(clockid_t clock)
{
    struct timespec time;
    need(clock_gettime(clock, &time) == 0);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static void *works(void *own)
{
    while (read_clock(CLOCK_THREAD_CPUTIME_ID) < 60000)
        for (volatile int i = 0; i < 1000; i++)
            ;
    *(long long *)own = read_clock(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    long long theirs = 0, mine = read_clock(CLOCK_THREAD_CPUTIME_ID), all = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    need(pthread_create(&thread, NULL, works, &theirs) == 0 && pthread_join(thread, NULL) == 0);
    check(theirs >= 60000, "the thread counted its work");
    check(read_clock(CLOCK_THREAD_CPUTIME_ID) - mine < 50000, "the main thread did not");
    check(read_clock(CLOCK_PROCESS_CPUTIME_ID) - all >= 60000, "the process did");
    clockid_t clock;
    RESULT(clock_getcpuclockid(getpid(), &clock));
    check(read_clock(clock) >= 60000, "the clock of our own pid agrees");
    show_text("clock of no process", errno_name(clock_getcpuclockid(9999999, &clock)));
    return 0;
}
