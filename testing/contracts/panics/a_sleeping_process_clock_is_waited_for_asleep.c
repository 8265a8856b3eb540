/*
 * clock_nanosleep(2), clock_getcpuclockid(3): who waits for the processor time of a process that sleeps itself sleeps
 * too: other programs run, and a signal ends the wait. The program is bound to one processor, so that an alarm that
 * came would have to come there.
 */
#include "../contract.h"
#include <sys/timerfd.h>

static void note(int number) { (void)number; }

static long wait_for(clockid_t clock, int flags, struct timespec until)
{
    return syscall(SYS_clock_nanosleep, clock, flags, &until, NULL);
}

int main(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0);
    pid_t sleeper = fork();
    need(sleeper != -1);
    if (sleeper == 0)
        for (;;)
            pause();
    sleep_ms(20);
    clockid_t clock;
    need(clock_getcpuclockid(sleeper, &clock) == 0);
    catch_signal(SIGALRM, note, 0);
    for (int absolute = 0; absolute < 2; absolute++) {
        struct timespec until = { 0, 1 };
        if (absolute) {
            need(clock_gettime(clock, &until) == 0);
            until.tv_nsec++;
        }
        struct itimerval soon = { .it_value = { 0, 50000 } };
        need(setitimer(ITIMER_REAL, &soon, NULL) == 0);
        say("%s:", absolute ? "absolute" : "relative");
        RESULT(wait_for(clock, absolute ? TIMER_ABSTIME : 0, until));
    }
    kill(sleeper, SIGKILL);
    show_status("the sleeper", reap(sleeper));
    return 0;
}
