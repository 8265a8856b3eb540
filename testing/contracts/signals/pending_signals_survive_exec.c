/* signal(7), execve(2): a blocked signal sent before exec is delivered after it when unblocked there. */
#include "../contract.h"

int main(int count, char **arguments)
{
    (void)arguments;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (count > 1) {
        sigset_t pending;
        sigpending(&pending);
        say("after exec: pending %d", sigismember(&pending, SIGTERM));
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        say("not reached");
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGTERM);
        execl("/proc/self/exe", "self", "again", NULL);
        _exit(9);
    }
    show_status("child", reap(child));
    child = vfork();
    if (child == 0) {
        kill(getpid(), SIGKILL);
        _exit(1);
    }
    show_status("killed between vfork and exec", reap(child));
    return 0;
}
