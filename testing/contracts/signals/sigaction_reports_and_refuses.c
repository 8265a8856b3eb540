/*
 * sigaction(2): returns the old action with its flags; SIGKILL and SIGSTOP cannot change; numbers outside 1..64
 * are EINVAL.
 */
#include "../contract.h"

static void handler(int number) { (void)number; }

int main(void)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART | SA_NODEFER }, old;
    sigaddset(&action.sa_mask, SIGHUP);
    sigaddset(&action.sa_mask, SIGKILL);
    RESULT(sigaction(SIGUSR1, &action, NULL));
    RESULT(sigaction(SIGUSR1, NULL, &old));
    say("handler same %d restart %d nodefer %d siginfo %d", old.sa_handler == handler, !!(old.sa_flags & SA_RESTART),
        !!(old.sa_flags & SA_NODEFER), !!(old.sa_flags & SA_SIGINFO));
    say("mask SIGHUP %d SIGKILL %d", sigismember(&old.sa_mask, SIGHUP), sigismember(&old.sa_mask, SIGKILL));
    RESULT(sigaction(SIGKILL, &action, NULL));
    RESULT(sigaction(SIGSTOP, &action, NULL));
    RESULT(sigaction(SIGKILL, NULL, &old));
    RESULT(syscall(SYS_rt_sigaction, 65, NULL, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, 0, NULL, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 16));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, BAD_POINTER, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, NULL, BAD_POINTER, 8));
    sigset_t set;
    sigfillset(&set);
    RESULT(sigprocmask(SIG_SETMASK, &set, NULL));
    RESULT(sigprocmask(SIG_BLOCK, NULL, &set));
    say("SIGKILL blocked %d SIGSTOP blocked %d SIGTERM blocked %d", sigismember(&set, SIGKILL),
        sigismember(&set, SIGSTOP), sigismember(&set, SIGTERM));
    RESULT(syscall(SYS_rt_sigprocmask, 7, &set, NULL, 8));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, BAD_POINTER, NULL, 8));
    return 0;
}
