/*
 * sched_setaffinity(2): the mask is cut to existing CPUs, empty is EINVAL, children and threads inherit, and it is
 * obeyed.
 */
#include "../contract.h"

static int child(void *unused)
{
    (void)unused;
    cpu_set_t set;
    need(sched_getaffinity(0, sizeof set, &set) == 0);
    say("child: cpus %d, the first %d, running there %d", CPU_COUNT(&set), !!CPU_ISSET(0, &set), sched_getcpu() == 0);
    return 0;
}

int main(void)
{
    cpu_set_t all, one, none;
    need(sched_getaffinity(0, sizeof all, &all) == 0);
    show("first cpu is there", !!CPU_ISSET(0, &all));
    CPU_ZERO(&one);
    CPU_ZERO(&none);
    CPU_SET(0, &one);
    RESULT(sched_setaffinity(0, sizeof one, &one));
    show("running on", sched_getcpu());
    show_status("child", in_child(child, NULL));
    RESULT(sched_setaffinity(0, sizeof none, &none));
    CPU_SET(1000, &none);
    RESULT(sched_setaffinity(0, sizeof none, &none));
    CPU_SET(0, &none);
    RESULT(sched_setaffinity(0, sizeof none, &none));
    need(sched_getaffinity(0, sizeof one, &one) == 0);
    show("cpus", CPU_COUNT(&one));
    RESULT(sched_setaffinity(0, sizeof all, &all));
    RESULT(sched_setaffinity(9999999, sizeof all, &all));
    RESULT(syscall(SYS_sched_getaffinity, 0, 1, &all));
    RESULT(syscall(SYS_sched_getaffinity, 0, sizeof all, BAD_POINTER));
    RESULT(syscall(SYS_sched_setaffinity, 0, sizeof all, BAD_POINTER));
    return 0;
}
