/*
 * sched(7), setpriority(2): RLIMIT_RTPRIO and RLIMIT_NICE are those of the process that is changed, not of the one that
 * asks; reset-on-fork is not taken back without privilege; one process that may not be changed keeps no other of the
 * group from it.
 */
#include "contract.h"
#include <sys/resource.h>

static void limits(long rtprio, long nice_limit)
{
    struct rlimit one = { rtprio, rtprio }, other = { nice_limit, nice_limit };
    need(setrlimit(RLIMIT_RTPRIO, &one) == 0 && setrlimit(RLIMIT_NICE, &other) == 0);
}

static int sleeper(void *unused)
{
    (void)unused;
    sleep_ms(5000);
    return 0;
}

static void become(uid_t uid) { need(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0); }

static pid_t other_with(long rtprio, long nice_limit)
{
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        limits(rtprio, nice_limit);
        become(65501);
        _exit(sleeper(NULL));
    }
    sleep_ms(30);
    return child;
}

static int try(pid_t target, int policy, int priority)
{
    struct sched_param param = { .sched_priority = priority };
    return syscall(SYS_sched_setscheduler, target, policy, &param);
}

static int asker(void *targets)
{
    pid_t rich = ((pid_t *)targets)[0], poor = ((pid_t *)targets)[1];
    limits(((pid_t *)targets)[2], ((pid_t *)targets)[2]);
    become(65501);
    RESULT(try(rich, SCHED_FIFO, 10));
    RESULT(try(rich, SCHED_FIFO, 11));
    RESULT(try(rich, SCHED_RR, 3));
    RESULT(try(poor, SCHED_FIFO, 1));
    RESULT(try(rich, SCHED_OTHER, 0));
    RESULT(setpriority(PRIO_PROCESS, rich, -5));
    RESULT(setpriority(PRIO_PROCESS, rich, -6));
    RESULT(setpriority(PRIO_PROCESS, poor, -1));
    RESULT(setpriority(PRIO_PROCESS, poor, 3));
    RESULT(setpriority(PRIO_PROCESS, poor, 2));
    RESULT(try(poor, SCHED_IDLE, 0));
    RESULT(try(poor, SCHED_OTHER, 0));
    RESULT(try(rich, SCHED_OTHER | SCHED_RESET_ON_FORK, 0));
    RESULT(try(rich, SCHED_OTHER, 0));
    RESULT(syscall(SYS_sched_getscheduler, rich));
    return 0;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    reap(child);
}

/* Two members of the group have another user id: the third is changed all the same. */
static void group(void)
{
    pid_t members[3];
    section("group");
    for (int i = 0; i < 3; i++) {
        if ((members[i] = fork()) == 0) {
            setpgid(0, 0);
            if (i > 0)
                setpgid(0, members[0]);
            become(i == 1 ? 65502 : 65501);
            _exit(sleeper(NULL));
        }
        setpgid(members[i], members[0]);
    }
    sleep_ms(50);
    pid_t child = fork();
    if (child == 0) {
        become(65501);
        RESULT(setpriority(PRIO_PGRP, members[0], 7));
        _exit(0);
    }
    reap(child);
    for (int i = 0; i < 3; i++) {
        say("member %d has nice value %d", i, getpriority(PRIO_PROCESS, members[i]));
        end(members[i]);
    }
}

int main(void)
{
    for (pid_t own = 0; own <= 20; own += 20) {
        pid_t targets[] = { other_with(10, 25), other_with(0, 0), own };
        say("-- asking with limits of %d", own);
        show_status("asker", in_child(asker, targets));
        end(targets[0]), end(targets[1]);
    }
    group();
    return 0;
}
