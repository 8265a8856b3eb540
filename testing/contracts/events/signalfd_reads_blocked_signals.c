/* signalfd(2): blocked signals of its set are read as structures, several per read, and no longer pending after. */
#include "../contract.h"
#include <sys/signalfd.h>

int main(void)
{
    sigset_t set;
    struct signalfd_siginfo info[4];
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    RESULT(read(fd, info, sizeof info));
    struct pollfd wait = { fd, POLLIN, 0 };
    RESULT(poll(&wait, 1, 0));
    raise(SIGUSR1);
    sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 44 });
    RESULT(poll(&wait, 1, 0));
    RESULT(read(fd, info, sizeof info[0] - 1));
    ssize_t got = read(fd, info, sizeof info);
    show("structures", got / (ssize_t)sizeof info[0]);
    for (int i = 0; i < got / (ssize_t)sizeof info[0]; i++)
        say("%s code %d mine %d value %d", signal_name(info[i].ssi_signo), info[i].ssi_code,
            (int)info[i].ssi_pid == getpid(), info[i].ssi_int);
    sigset_t pending;
    sigpending(&pending);
    show("pending", sigismember(&pending, SIGUSR1));
    section("the set can be replaced");
    sigdelset(&set, SIGUSR1);
    RESULT(signalfd(fd, &set, 0) == fd);
    raise(SIGUSR1);
    RESULT(read(fd, info, sizeof info));
    sigpending(&pending);
    show("pending", sigismember(&pending, SIGUSR1));
    RESULT(signalfd(1, &set, 0));
    RESULT(signalfd(600, &set, 0));
    RESULT(signalfd(-1, &set, 0x40));
    RESULT(syscall(SYS_signalfd4, -1, &set, 4, 0));
    return 0;
}
