/*
 * timer_create(2): timers on the processor time of processes that sleep, due after hardly any of it, leave the
 * processor to others, however many an ordinary user makes.
 * contract: timeout=40
 */
#include "../security/security.h"

#define TIMERS 400
#define PROCESSES 4

static void pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0);
}

static int *made;

static int sleeper(void *unused)
{
    struct itimerspec soon = { { 0, 0 }, { 0, 400000 } };
    pin(1);
    for (int i = 0; i < TIMERS; i++) {
        timer_t timer;
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG };
        if (timer_create((clockid_t)(~(unsigned)getppid() << 3 | 2), &event, &timer) != 0)
            break;
        need(timer_settime(timer, 0, &soon, NULL) == 0);
    }
    __atomic_add_fetch(made, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
    return unused != NULL;
}

static int attack(void *unused)
{
    for (int i = 0; i < PROCESSES; i++)
        spawn(sleeper, NULL);
    for (;;)
        pause();
    return unused != NULL;
}

static long work_of(long milliseconds)
{
    long done = 0;
    for (long long end = elapsed_ms() + milliseconds; elapsed_ms() < end; done++)
        for (volatile int i = 0; i < 1000;)
            i++;
    return done;
}

int main(void)
{
    made = shared_page();
    need(setpgid(0, 0) == 0 || errno == EPERM);
    struct attempt what = { attack, NULL };
    pin(1);
    long before = work_of(1500);
    pid_t attacker = spawn(run_as_nobody, &what);
    for (int i = 0; *made < PROCESSES && i < 2000; i++)
        sleep_ms(5);
    check(*made == PROCESSES, "the timers are made");
    long beside = work_of(1500);
    check(beside > before / 2, "a program beside them has most of the processor");
    kill(attacker, SIGKILL);
    show_status("the attacker", reap(attacker));
    return 0;
}
