/* getpriority(2), nice(2): nice values are clamped to -20..19, inherited, and only root may lower them again. */
#include "../contract.h"
#include <sys/resource.h>

static int user(void *unused)
{
    (void)unused;
    show("inherited", getpriority(PRIO_PROCESS, 0));
    need(setuid(1000) == 0);
    RESULT(setpriority(PRIO_PROCESS, 0, 12));
    RESULT(setpriority(PRIO_PROCESS, 0, 11));
    RESULT(setpriority(PRIO_PROCESS, getppid(), 15));
    return 0;
}

int main(void)
{
    show("at first", getpriority(PRIO_PROCESS, 0));
    RESULT(nice(5));
    RESULT(setpriority(PRIO_PROCESS, 0, 100));
    show("clamped", getpriority(PRIO_PROCESS, 0));
    RESULT(setpriority(PRIO_PROCESS, 0, -100));
    show("clamped", getpriority(PRIO_PROCESS, 0));
    RESULT(setpriority(PRIO_PROCESS, getpid(), 10));
    RESULT(setpriority(7, 0, 0));
    RESULT(setpriority(PRIO_PROCESS, 9999999, 0));
    RESULT(getpriority(PRIO_PGRP, 9999999));
    show_status("user", in_child(user, NULL));
    show("raw answer is 20 - nice", syscall(SYS_getpriority, PRIO_PROCESS, 0));
    return 0;
}
