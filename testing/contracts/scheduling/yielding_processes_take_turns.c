/*
 * sched_yield(2): two processes on one CPU that yield to each other both advance; a busy third does not starve
 * them.
 */
#include "../contract.h"

static volatile int *shared;

static int yields(void *index)
{
    for (int i = 0; i < 300; i++) {
        shared[*(int *)index]++;
        sched_yield();
    }
    return 0;
}

static int busy(void *unused)
{
    (void)unused;
    while (shared[0] < 300 || shared[1] < 300)
        ;
    return 0;
}

int main(void)
{
    cpu_set_t one;
    int zero = 0, first = 1;
    shared = shared_page();
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0);
    RESULT(sched_yield());
    pid_t a = spawn(yields, &zero), b = spawn(yields, &first);
    show_status("a", reap(a));
    show_status("b", reap(b));
    shared[0] = shared[1] = 250;
    pid_t c = spawn(busy, NULL);
    a = spawn(yields, &zero), b = spawn(yields, &first);
    show_status("a", reap(a));
    show_status("b", reap(b));
    show_status("busy", reap(c));
    say("turns %d %d", shared[0], shared[1]);
    return 0;
}
