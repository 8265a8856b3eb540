/*
 * setitimer(2), timer_create(2): timers of processor time go off in a process that works for a millisecond at a time
 * and sleeps in between, whether it is one thread that works or many short-lived ones.
 */
#include "../contract.h"

#include <pthread.h>

static volatile sig_atomic_t profiled;
static void note(int number)
{
    (void)number;
    profiled++;
}

static long long used(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *work(void *unused)
{
    long long until = used(CLOCK_THREAD_CPUTIME_ID) + 1000000;
    while (used(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
    return unused;
}

static void work_in_a_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
}

/* Works for up to 400 ms of processor time in all. */
static int signals_of_bursts(int in_threads)
{
    struct itimerval timer = { { 0, 20000 }, { 0, 20000 } }, off = { 0 };
    profiled = 0;
    setitimer(ITIMER_PROF, &timer, NULL);
    for (int burst = 0; burst < 400 && profiled < 2; burst++) {
        if (in_threads)
            work_in_a_thread();
        else
            work(NULL);
        sleep_ms(15);
    }
    setitimer(ITIMER_PROF, &off, NULL);
    return profiled;
}

int main(void)
{
    catch_signal(SIGPROF, note, SA_RESTART);
    show("one thread's bursts get two signals", signals_of_bursts(0) >= 2);
    show("short-lived threads get two signals", signals_of_bursts(1) >= 2);
    return 0;
}
