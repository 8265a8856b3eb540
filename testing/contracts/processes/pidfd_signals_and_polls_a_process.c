/*
 * pidfd_open(2): a pidfd becomes readable when the process ends, carries signals, and keeps meaning after the pid
 * is gone.
 */
#include "../contract.h"

static int sleeper(void *unused) { (void)unused; pause(); return 0; }

int main(void)
{
    pid_t child = spawn(sleeper, NULL);
    int fd = syscall(SYS_pidfd_open, child, 0);
    need(fd != -1);
    struct pollfd wait = { fd, POLLIN, 0 };
    RESULT(poll(&wait, 1, 0));
    RESULT(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    RESULT(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
    RESULT(poll(&wait, 1, 3000));
    show("revents", wait.revents);
    siginfo_t info;
    RESULT(waitid(3 /* P_PIDFD */, fd, &info, WEXITED));
    say("code %d status %s", info.si_code, signal_name(info.si_status));
    RESULT(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    RESULT(syscall(SYS_pidfd_open, child, 0));
    RESULT(syscall(SYS_pidfd_open, -1, 0));
    RESULT(syscall(SYS_pidfd_open, getpid(), 1));
    char byte;
    RESULT(read(fd, &byte, 1));
    return 0;
}
