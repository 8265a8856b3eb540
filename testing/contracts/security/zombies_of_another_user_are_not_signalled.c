/*
 * kill(2): a process that has ended and was not waited for still belongs to its user: EPERM for another, 0 for the same
 * one and root. waitid(2) tells that user.
 */
#include "security.h"
#include <sys/syscall.h>

static int ends(void *uid)
{
    uid_t id = *(uid_t *)uid;
    need(setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0);
    return 3;
}

static pid_t zombie;

static int sender(void *uid)
{
    uid_t id = *(uid_t *)uid;
    need(setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0);
    union sigval value = { .sival_int = 1 };
    say("-- as user %d", (int)id);
    RESULT(kill(zombie, 0));
    RESULT(kill(zombie, SIGKILL));
    RESULT(kill(zombie, SIGCONT));
    RESULT(kill(-zombie, 0));
    RESULT(syscall(SYS_tkill, zombie, SIGTERM));
    RESULT(sigqueue(zombie, SIGTERM, value));
    int fd = syscall(SYS_pidfd_open, zombie, 0);
    RESULT(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
    return 0;
}

int main(void)
{
    uid_t ids[] = { 65471, 65472, 0 };
    siginfo_t info;
    zombie = spawn(ends, &ids[0]);
    need(waitid(P_PID, zombie, &info, WEXITED | WNOWAIT) == 0);
    say("ended with %d, user %d", info.si_status, (int)info.si_uid);
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        show_status("sender", in_child(sender, &ids[i]));
    show_status("the zombie", reap(zombie));
    return 0;
}
