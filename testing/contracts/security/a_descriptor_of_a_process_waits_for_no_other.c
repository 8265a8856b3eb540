/*
 * waitid(2) P_PIDFD, pidfd_open(2), pidfd_send_signal(2): a descriptor of a process means that process for good. When
 * its number went to another child, nothing that is done through the descriptor reaches that one.
 */
#include "security.h"
#include <linux/sched.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* A child with this number, which waits to be killed. */
static pid_t child_with(pid_t number)
{
    struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (unsigned long)&number, .set_tid_size = 1 };
    pid_t child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0)
        for (;;)
            pause();
    return child;
}

int main(void)
{
    siginfo_t info;
    scratch();
    pid_t first = start_victim(NULL);
    int fd = syscall(SYS_pidfd_open, first, 0);
    need(fd != -1);
    end_victim("the first", first);
    need(child_with(first) == first);
    section("its number is another child's");
    errno = 0;
    say("waitid: %s", waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG) ? errno_name(errno) : "ok");
    RESULT(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    RESULT(syscall(SYS_pidfd_getfd, fd, 0, 0));
    need(kill(first, SIGKILL) == 0);
    sleep_ms(100);
    section("which has ended");
    struct pollfd ready = { fd, POLLIN, 0 };
    RESULT(poll(&ready, 1, 0));
    errno = 0;
    say("waitid: %s", waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG) ? errno_name(errno) : "ok");
    show_status("the second", reap(first));
    return 0;
}
