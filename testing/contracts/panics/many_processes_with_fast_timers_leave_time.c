/*
 * setitimer(2): interval timers of a microsecond in a hundred processes of one processor, more than it can handle in
 * the time after which they are due again, leave the processes time to run and to end.
 * contract: timeout=20
 */
#include "../contract.h"
#include <sys/time.h>

#define PROCESSES 100

static void pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* A handler may be all that runs from here on. */
static void handle(int number)
{
    static volatile long handled;
    (void)number;
    if (++handled == 50)
        _exit(0);
}

/* Its timer goes off without end while it runs. */
static int fast(void *heard)
{
    struct itimerval every = { { 0, 1 }, { 0, 1 } };
    pin(1);
    if (heard)
        catch_signal(SIGALRM, handle, SA_RESTART);
    else
        signal(SIGALRM, SIG_IGN);
    need(setitimer(ITIMER_REAL, &every, NULL) == 0);
    volatile long work = 0;
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 0; i < 1000; i++)
            work += i;
        sched_yield();
    }
    struct timespec end, now;
    need(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
    end.tv_sec++;
    do
        sched_yield();
    while (clock_gettime(CLOCK_MONOTONIC, &now) == 0
        && (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec)));
    return work == 5 * 499500 ? 0 : 1;
}

static void crowd(const char *what, void *heard)
{
    pid_t all[PROCESSES];
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++)
        all[i] = spawn(fast, heard);
    for (int i = 0; i < PROCESSES; i++)
        failed += reap(all[i]) != 0;
    say("%s: %d of %d failed", what, failed, PROCESSES);
}

int main(void)
{
    pin(0);
    crowd("ignored", NULL);
    crowd("handled", "");
    return 0;
}
