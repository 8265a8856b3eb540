/*
 * kill(2): signal 0 only asks, unknown pids are ESRCH, foreign users EPERM, bad numbers EINVAL; a zombie still
 * exists.
 */
#include "../contract.h"

static int sleeper(void *unused) { (void)unused; pause(); return 0; }
static int quit(void *unused) { (void)unused; return 0; }

static int user(void *target)
{
    need(setuid(1000) == 0);
    RESULT(kill(*(pid_t *)target, 0));
    RESULT(kill(*(pid_t *)target, SIGTERM));
    RESULT(kill(getpid(), 0));
    RESULT(kill(1, 0));
    return 0;
}

int main(void)
{
    pid_t child = spawn(sleeper, NULL), zombie = spawn(quit, NULL);
    siginfo_t info;
    RESULT(kill(child, 0));
    RESULT(kill(child, 65));
    RESULT(kill(child, -1));
    RESULT(kill(9999999, 0));
    RESULT(kill(-9999999, 0));
    show_status("user", in_child(user, &child));
    need(waitid(P_PID, zombie, &info, WEXITED | WNOWAIT) == 0);
    RESULT(kill(zombie, 0));
    RESULT(kill(zombie, SIGKILL));
    show_status("zombie", reap(zombie));
    RESULT(kill(zombie, 0));
    RESULT(syscall(SYS_tgkill, child, child, 0));
    RESULT(syscall(SYS_tgkill, getpid(), child, 0));
    RESULT(syscall(SYS_tgkill, -1, child, 0));
    RESULT(syscall(SYS_tkill, 0, SIGTERM));
    RESULT(kill(child, SIGTERM));
    show_status("child", reap(child));
    return 0;
}
