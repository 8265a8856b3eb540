/*
 * kill(2), tkill(2), tgkill(2), rt_sigqueueinfo(2), pidfd_send_signal(2): EPERM unless the sender's real or effective
 * user is the target's real or saved one; SIGCONT also within the session.
 */
#include "security.h"

static pid_t victim;

static int attempt(void *unused)
{
    siginfo_t info = { .si_signo = SIGTERM, .si_code = SI_QUEUE };
    int fd = syscall(SYS_pidfd_open, victim, 0);
    need(fd != -1);
    OUTCOME(kill(victim, 0));
    OUTCOME(kill(victim, SIGTERM));
    OUTCOME(kill(victim, SIGCONT));
    OUTCOME(kill(-getpgid(victim), SIGTERM));
    OUTCOME(kill(-getpgid(victim), SIGCONT));
    OUTCOME(syscall(SYS_tkill, victim, SIGTERM));
    OUTCOME(syscall(SYS_tgkill, victim, victim, SIGTERM));
    OUTCOME(syscall(SYS_tgkill, -1, victim, SIGTERM));
    OUTCOME(syscall(SYS_rt_sigqueueinfo, victim, SIGTERM, &info));
    OUTCOME(syscall(SYS_rt_tgsigqueueinfo, victim, victim, SIGTERM, &info));
    OUTCOME(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
    OUTCOME(kill(1, SIGCONT));
    OUTCOME(kill(1, SIGTERM));
    return unused != NULL;
}

static void roots(void) { need(setpgid(0, 0) == 0); }
static void in_own_session(void) { need(setsid() != -1); }
static void effective(void) { need(setpgid(0, 0) == 0 && setresuid(1000, NOBODY, 1000) == 0); }
static void saved(void)
{
    need(setpgid(0, 0) == 0 && signal(SIGTERM, SIG_IGN) != SIG_ERR && setresuid(1000, 1000, NOBODY) == 0);
}

int main(void)
{
    static const struct { const char *name; void (*prepare)(void); } victims[] = {
        { "root's", roots }, { "in another session", in_own_session }, { "the same effective user", effective },
        { "the same saved user", saved },
    };
    for (size_t at = 0; at < COUNT_OF(victims); at++) {
        section(victims[at].name);
        victim = start_victim(victims[at].prepare);
        as_nobody(attempt, NULL);
        end_victim("victim", victim);
    }
    return 0;
}
