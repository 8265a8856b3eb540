/*
 * timer_create(2): a timer signals with its value, reports what is left, counts overruns while blocked, and dies
 * by delete.
 */
#include "../contract.h"

int main(void)
{
    timer_t timer;
    sigset_t set;
    siginfo_t info;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 123 };
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    struct itimerspec plan = { .it_value = { 0, 5000000 } }, now;
    RESULT(timer_settime(timer, 0, &plan, NULL));
    struct timespec limit = { 3, 0 };
    need(sigtimedwait(&set, &info, &limit) == SIGRTMIN + 1);
    say("code %d value %d overrun %d", info.si_code, info.si_value.sival_int, info.si_overrun);
    RESULT(timer_gettime(timer, &now));
    say("expired timer has %lld.%09ld left", (long long)now.it_value.tv_sec, now.it_value.tv_nsec);
    plan.it_interval.tv_nsec = 2000000;
    RESULT(timer_settime(timer, 0, &plan, NULL));
    sleep_ms(60);
    need(sigtimedwait(&set, &info, &limit) == SIGRTMIN + 1);
    say("overruns while blocked %d", timer_getoverrun(timer) >= 5);
    plan.it_value.tv_sec = 100;
    RESULT(timer_settime(timer, 0, &plan, &now));
    say("old interval %ld", now.it_interval.tv_nsec);
    need(timer_gettime(timer, &now) == 0);
    say("about 100 s left %d", now.it_value.tv_sec >= 95 && now.it_value.tv_sec <= 100);
    plan.it_value.tv_nsec = 1000000000;
    RESULT(timer_settime(timer, 0, &plan, NULL));
    RESULT(syscall(SYS_timer_delete, timer));
    RESULT(syscall(SYS_timer_delete, timer));
    RESULT(timer_create(99, &event, &timer));
    event.sigev_signo = 99;
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    event.sigev_notify = SIGEV_NONE;
    RESULT(timer_create(CLOCK_REALTIME, &event, &timer));
    return 0;
}
