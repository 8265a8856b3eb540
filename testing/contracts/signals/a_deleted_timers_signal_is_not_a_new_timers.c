/*
 * timer_delete(2): the signal that a timer has sent stays pending with its own value, beside that of a timer made
 * afterwards.
 */
#include "../contract.h"

static void fire_once(timer_t timer)
{
    struct itimerspec soon = { .it_value = { 0, 1000 } };
    need(timer_settime(timer, 0, &soon, NULL) == 0);
    sleep_ms(30);
}

int main(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    struct timespec now = { 0 };
    timer_t timer;
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    for (int value = 1; value <= 2; value++) {
        event.sigev_value.sival_int = value;
        need(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        fire_once(timer);
        if (value == 1)
            need(timer_delete(timer) == 0);
    }
    while (sigtimedwait(&set, &info, &now) == SIGUSR1)
        say("value %d overruns %d", info.si_value.sival_int, info.si_overrun);
    return 0;
}
