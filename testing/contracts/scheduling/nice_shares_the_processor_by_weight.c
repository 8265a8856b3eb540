/* sched(7): of two busy processes on one CPU the nicer one gets clearly less time, and both get some. */
#include "../contract.h"
#include <sys/resource.h>

static volatile long *counts;

static int works(void *index)
{
    int me = *(int *)index;
    need(setpriority(PRIO_PROCESS, 0, me ? 15 : 0) == 0);
    for (;;)
        counts[me * 64]++;
    return 0;
}

int main(void)
{
    cpu_set_t one;
    int zero = 0, first = 1;
    counts = shared_page();
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0);
    pid_t normal = spawn(works, &zero), nicer = spawn(works, &first);
    sleep_ms(1500);
    long a = counts[0], b = counts[64];
    kill(normal, SIGKILL);
    kill(nicer, SIGKILL);
    show_status("normal", reap(normal));
    show_status("nicer", reap(nicer));
    say("both ran %d, the normal one at least four times as much %d", a > 0 && b > 0, a >= 4 * b);
    return 0;
}
