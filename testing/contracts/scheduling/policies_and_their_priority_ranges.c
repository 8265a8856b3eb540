/*
 * sched(7): FIFO and RR take 1..99, the others only 0; reset-on-fork and unknown policies are checked; users may
 * not go real-time.
 */
#include "../contract.h"

static long set(int policy, int priority)
{
    struct sched_param parameter = { .sched_priority = priority };
    return syscall(SYS_sched_setscheduler, 0, policy, &parameter);
}

static int child(void *unused)
{
    (void)unused;
    say("child's policy %ld", syscall(SYS_sched_getscheduler, 0));
    need(set(SCHED_OTHER, 0) == 0 && setuid(1000) == 0);
    RESULT(set(SCHED_FIFO, 1));
    RESULT(set(SCHED_BATCH, 0));
    return 0;
}

int main(void)
{
    int policies[] = { SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE };
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        say("policy %d: %ld to %ld", policies[i], syscall(SYS_sched_get_priority_min, policies[i]),
            syscall(SYS_sched_get_priority_max, policies[i]));
    RESULT(syscall(SYS_sched_get_priority_max, 99));
    RESULT(syscall(SYS_sched_getscheduler, 0));
    RESULT(set(SCHED_OTHER, 1));
    RESULT(set(SCHED_FIFO, 0));
    RESULT(set(SCHED_FIFO, 100));
    RESULT(set(99, 0));
    RESULT(set(SCHED_RR, 5));
    struct sched_param parameter = { 0 };
    RESULT(syscall(SYS_sched_getparam, 0, &parameter));
    show("priority", parameter.sched_priority);
    show_status("child", in_child(child, NULL));
    RESULT(set(SCHED_RR | SCHED_RESET_ON_FORK, 5));
    show_status("child", in_child(child, NULL));
    RESULT(syscall(SYS_sched_getscheduler, 9999999));
    RESULT(syscall(SYS_sched_getscheduler, -1));
    return 0;
}
