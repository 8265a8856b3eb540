/*
 * prlimit(2), setpriority(2), sched_setscheduler(2), sched_setaffinity(2), setrlimit(2): those of another user are not
 * changed or read, one's own are not raised.
 */
#include "security.h"
#include <sys/resource.h>

static int attempt(void *victim)
{
    pid_t pid = *(pid_t *)victim;
    struct rlimit limit = { 5, 5 }, old;
    struct sched_param idle = { .sched_priority = 0 }, first = { .sched_priority = 1 };
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    RESULT(prlimit(pid, RLIMIT_NOFILE, NULL, &old));
    RESULT(prlimit(pid, RLIMIT_NOFILE, &limit, NULL));
    RESULT(setpriority(PRIO_PROCESS, pid, 19));
    RESULT(sched_setaffinity(pid, sizeof one, &one));
    RESULT(syscall(SYS_sched_setscheduler, pid, SCHED_BATCH, &idle));
    RESULT(syscall(SYS_sched_setscheduler, pid, SCHED_FIFO, &first));
    RESULT(getpriority(PRIO_PROCESS, pid));
    return 0;
}

static int own(void *unused)
{
    (void)unused;
    struct sched_param first = { .sched_priority = 1 };
    struct rlimit limit;
    RESULT(setpriority(PRIO_PROCESS, 0, -1));
    RESULT(setpriority(PRIO_PROCESS, 0, 5));
    RESULT(setpriority(PRIO_PROCESS, 0, 4));
    RESULT(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &first));
    RESULT(syscall(SYS_sched_setscheduler, 0, SCHED_RR, &first));
    need(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_max++;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max = 10;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_max = 11;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    need(getrlimit(RLIMIT_NICE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max = 40;
    RESULT(setrlimit(RLIMIT_NICE, &limit));
    RESULT(setrlimit(RLIMIT_RTPRIO, &limit));
    return 0;
}

static void user(void) { become_nobody(); }
static void other_user(void) { become(1000, NOBODY); }
static void other_group(void) { become(NOBODY, 1000); }
static void saved_user(void) { need(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, 1000) == 0); }

int main(void)
{
    static const struct { const char *name; void (*prepare)(void); } victims[] = {
        { "root's", NULL }, { "another user's", other_user }, { "another group's", other_group },
        { "another saved user's", saved_user }, { "one's own", user },
    };
    for (size_t at = 0; at < COUNT_OF(victims); at++) {
        section(victims[at].name);
        pid_t victim = start_victim(victims[at].prepare);
        as_nobody(attempt, &victim);
        kill(victim, SIGKILL);
        reap(victim);
    }
    section("raising");
    as_nobody(own, NULL);
    return 0;
}
