/*
 * setitimer(2), alarm(2): timers fire once or again, report what is left, are not inherited by fork, and count CPU
 * time apart.
 */
#include "../contract.h"

static volatile sig_atomic_t alarms, virtual_alarms;
static void note(int number)
{
    if (number == SIGALRM)
        alarms++;
    else
        virtual_alarms++;
}

static int child(void *unused)
{
    (void)unused;
    struct itimerval now;
    getitimer(ITIMER_REAL, &now);
    return now.it_value.tv_sec || now.it_value.tv_usec;
}

int main(void)
{
    struct itimerval timer = { { 0, 10000 }, { 0, 10000 } }, old;
    catch_signal(SIGALRM, note, 0);
    catch_signal(SIGVTALRM, note, 0);
    RESULT(setitimer(ITIMER_REAL, &timer, NULL));
    while (alarms < 3)
        pause();
    show("interval fired again", alarms >= 3);
    timer = (struct itimerval){ 0 };
    RESULT(setitimer(ITIMER_REAL, &timer, &old));
    show("interval reported", old.it_interval.tv_usec);
    RESULT(alarm(100));
    RESULT(alarm(50));
    show_status("inherited by fork", in_child(child, NULL));
    RESULT(alarm(0));
    RESULT(alarm(0));
    timer.it_value.tv_usec = 20000;
    RESULT(setitimer(ITIMER_VIRTUAL, &timer, NULL));
    sleep_ms(60);
    show("virtual time stands still while asleep", virtual_alarms == 0);
    while (!virtual_alarms)
        ;
    show("virtual alarm while busy", virtual_alarms);
    RESULT(setitimer(9, &timer, NULL));
    timer.it_value.tv_usec = 1000000;
    RESULT(setitimer(ITIMER_REAL, &timer, NULL));
    RESULT(syscall(SYS_getitimer, ITIMER_REAL, BAD_POINTER));
    return 0;
}
