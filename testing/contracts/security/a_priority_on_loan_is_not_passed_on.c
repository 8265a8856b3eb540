/*
 * sched(7), SCHED_RESET_ON_FORK: a real-time policy that privilege lent to a process is not inherited by its
 * children, and the process cannot take the flag away without CAP_SYS_NICE.
 */
#include "security.h"
#include <linux/sched.h>
#include <sys/resource.h>

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static long attr(int policy, int priority, uint64_t flags)
{
    struct attributes wanted = { .size = sizeof wanted, .policy = policy, .priority = priority, .flags = flags };
    return syscall(SYS_sched_setattr, 0, &wanted, 0);
}

static int childs(void *unused)
{
    (void)unused;
    show("the child's policy", syscall(SYS_sched_getscheduler, 0));
    return 0;
}

static long set(int policy, int priority)
{
    struct sched_param param = { .sched_priority = priority };
    return syscall(SYS_sched_setscheduler, 0, policy, &param);
}

static int attempt(void *unused)
{
    (void)unused;
    OUTCOME(set(SCHED_FIFO, 5));
    OUTCOME(set(SCHED_RR, 5));
    OUTCOME(set(SCHED_FIFO, 4));
    OUTCOME(set(SCHED_OTHER, 0));
    OUTCOME(attr(SCHED_FIFO, 5, 0));
    OUTCOME(attr(SCHED_FIFO, 5, 8));
    OUTCOME(attr(SCHED_OTHER, 0, 0));
    show("own policy", syscall(SYS_sched_getscheduler, 0));
    in_child(childs, NULL);
    OUTCOME(set(SCHED_FIFO | SCHED_RESET_ON_FORK, 6));
    OUTCOME(set(SCHED_FIFO | SCHED_RESET_ON_FORK, 3));
    OUTCOME(set(SCHED_OTHER | SCHED_RESET_ON_FORK, 0));
    OUTCOME(set(SCHED_OTHER, 0));
    OUTCOME(set(SCHED_FIFO, 1));
    return 0;
}

int main(void)
{
    need(set(SCHED_FIFO | SCHED_RESET_ON_FORK, 5) == 0);
    /* This process lends its own policy: a child of it would not have it. */
    become_nobody();
    return attempt(NULL);
}
