/*
 * setitimer(2): an ITIMER_REAL that repeats goes on when its signal is taken, so that one with a short interval costs
 * no more than the signals its process takes. Ignored it stands still until some SIGALRM is taken.
 */
#include "../contract.h"
#include <sys/time.h>

static volatile sig_atomic_t alarms;
static void note(int number)
{
    (void)number;
    alarms++;
}

static void show_timer(const char *when)
{
    struct itimerval now;
    need(getitimer(ITIMER_REAL, &now) == 0);
    say("%s: %s, interval %ld us", when, now.it_value.tv_sec || now.it_value.tv_usec ? "runs" : "stands still",
        (long)now.it_interval.tv_usec);
}

static void set(long usec)
{
    struct itimerval every = { { 0, usec }, { 0, usec } };
    need(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

static int taken(void)
{
    sigset_t set;
    struct timespec soon = { 0 };
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    return sigtimedwait(&set, NULL, &soon) == SIGALRM;
}

int main(void)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    section("blocked");
    catch_signal(SIGALRM, note, 0);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    set(100000);
    show_timer("set");
    sleep_ms(350);
    show_timer("after its signal");
    show("taken", taken());
    show_timer("taken");
    show("taken again at once", taken());
    sleep_ms(150);
    show("taken after another interval", taken());
    sleep_ms(150);
    show_timer("unheard");
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    show("handled", alarms);
    show_timer("handled");
    section("ignored");
    signal(SIGALRM, SIG_IGN);
    set(10000);
    sleep_ms(50);
    show_timer("ignored");
    alarms = 0;
    catch_signal(SIGALRM, note, 0);
    sleep_ms(50);
    show("heard with a handler", alarms);
    need(kill(getpid(), SIGALRM) == 0);
    while (alarms < 5)
        pause();
    show_timer("after one of kill");
    section("thrown away");
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    set(10000);
    sleep_ms(30);
    signal(SIGALRM, SIG_IGN);
    sleep_ms(30);
    show_timer("thrown away");
    set(10000);
    show_timer("set again");
    return 0;
}
