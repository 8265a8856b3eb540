/*
 * rt_sigqueueinfo(2), rt_tgsigqueueinfo(2), pidfd_send_signal(2): a si_code that only the kernel or kill(2) gives is
 * refused for any process but one's own.
 */
#include "security.h"

static pid_t victim;
static int fd;

static void attempts(int code, const char *name)
{
    siginfo_t info = { .si_signo = SIGURG, .si_code = code };
    section(name);
    info.si_pid = 1;
    OUTCOME(syscall(SYS_rt_sigqueueinfo, victim, SIGURG, &info));
    OUTCOME(syscall(SYS_rt_tgsigqueueinfo, victim, victim, SIGURG, &info));
    OUTCOME(syscall(SYS_pidfd_send_signal, fd, SIGURG, &info, 0));
    OUTCOME(syscall(SYS_rt_sigqueueinfo, getpid(), SIGURG, &info));
    OUTCOME(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGURG, &info));
}

static void child_of_user(void) { become_nobody(); }

static int attempt(void *unused)
{
    need((fd = syscall(SYS_pidfd_open, victim, 0)) != -1);
    attempts(SI_KERNEL, "SI_KERNEL");
    attempts(SI_USER, "SI_USER");
    attempts(SI_TKILL, "SI_TKILL");
    attempts(SI_QUEUE, "SI_QUEUE");
    attempts(CLD_EXITED, "CLD_EXITED");
    siginfo_t info = { .si_signo = SIGTERM, .si_code = SI_QUEUE };
    section("another number inside");
    OUTCOME(syscall(SYS_pidfd_send_signal, fd, SIGURG, &info, 0));
    OUTCOME(syscall(SYS_pidfd_send_signal, fd, SIGURG, NULL, 1));
    return unused != NULL;
}

int main(void)
{
    victim = start_victim(child_of_user);
    as_nobody(attempt, NULL);
    end_victim("victim", victim);
    return 0;
}
