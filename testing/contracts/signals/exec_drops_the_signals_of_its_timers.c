/*
 * execve(2), timer_create(2): timers of timer_create are deleted by an exec, and a signal of one that is still
 * pending goes with them; pending signals of setitimer, kill and sigqueue stay.
 */
#include "contract.h"

static void show_pending(void)
{
    static const int numbers[] = { SIGUSR1, SIGUSR2, SIGALRM, 40, 41 };
    sigset_t pending;
    sigpending(&pending);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        say("%d pending: %d", numbers[i], sigismember(&pending, numbers[i]));
}

int main(int count, char **words)
{
    if (count > 1) {
        section(words[1]);
        show_pending();
        return 0;
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    timer_t timers[2];
    struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
    for (int i = 0; i < 2; i++) {
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = i ? 40 : SIGUSR1 };
        need(timer_create(CLOCK_MONOTONIC, &event, &timers[i]) == 0 && timer_settime(timers[i], 0, &soon, NULL) == 0);
    }
    struct itimerval alarm = { .it_value.tv_usec = 1000 };
    need(setitimer(ITIMER_REAL, &alarm, NULL) == 0);
    need(kill(getpid(), SIGUSR2) == 0 && sigqueue(getpid(), 41, (union sigval){ .sival_int = 5 }) == 0);
    sleep_ms(50);
    section("before");
    show_pending();
    execl("/proc/self/exe", "self", "after", NULL);
    return 1;
}
