/*
 * clone(2): clone3 reads a versioned structure; too small is EINVAL, unknown non-zero tail E2BIG, and exit_signal
 * is honoured.
 */
#include "../contract.h"

struct arguments {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, rest[4];
};

int main(void)
{
    struct arguments arguments = { .exit_signal = SIGCHLD };
    pid_t child = syscall(SYS_clone3, &arguments, 64);
    if (child == 0)
        _exit(6);
    need(child != -1);
    show_status("child", reap(child));
    RESULT(syscall(SYS_clone3, &arguments, 56));
    RESULT(syscall(SYS_clone3, BAD_POINTER, 64));
    RESULT(syscall(SYS_clone3, &arguments, 10000));
    arguments.exit_signal = 999;
    RESULT(syscall(SYS_clone3, &arguments, 64));
    arguments.exit_signal = SIGCHLD, arguments.stack_size = 4096;
    RESULT(syscall(SYS_clone3, &arguments, 64));
    arguments.stack_size = 0, arguments.flags = CLONE_SIGHAND;
    RESULT(syscall(SYS_clone3, &arguments, 64));
    int pidfd = -1, status;
    arguments.flags = 0x1000 /* CLONE_PIDFD */, arguments.pidfd = (uintptr_t)&pidfd;
    child = syscall(SYS_clone3, &arguments, 64);
    if (child == 0)
        _exit(8);
    show("pidfd given", pidfd >= 0);
    show("close-on-exec", fcntl(pidfd, F_GETFD));
    struct pollfd wait = { pidfd, POLLIN, 0 };
    RESULT(poll(&wait, 1, 3000));
    need(waitpid(child, &status, 0) == child);
    show_status("child", status);
    return 0;
}
