/* waitid(2): fills siginfo with code, status and uid; WNOWAIT leaves the child waitable; WNOHANG zeroes si_pid. */
#include "../contract.h"

static int quit(void *unused) { (void)unused; return 7; }
static int sleeper(void *unused) { (void)unused; pause(); return 0; }

static void show_info(const char *who, siginfo_t *info, pid_t pid)
{
    say("%s: signal %s code %d status %d pid right %d uid %d", who, signal_name(info->si_signo), info->si_code,
        info->si_status, info->si_pid == pid, (int)info->si_uid);
}

int main(void)
{
    siginfo_t info;
    pid_t child = spawn(quit, NULL);
    RESULT(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    show_info("peeked", &info, child);
    RESULT(waitid(P_ALL, 0, &info, WEXITED));
    show_info("reaped", &info, child);
    RESULT(waitid(P_ALL, 0, &info, WEXITED));
    child = spawn(sleeper, NULL);
    memset(&info, 0xff, sizeof info);
    RESULT(waitid(P_PID, child, &info, WEXITED | WNOHANG));
    say("nothing yet: signal %d pid %d", info.si_signo, (int)info.si_pid);
    kill(child, SIGSTOP);
    RESULT(waitid(P_PID, child, &info, WSTOPPED));
    show_info("stopped", &info, child);
    kill(child, SIGCONT);
    RESULT(waitid(P_PID, child, &info, WCONTINUED));
    show_info("continued", &info, child);
    kill(child, SIGKILL);
    RESULT(waitid(P_PID, child, &info, WEXITED));
    show_info("killed", &info, child);
    RESULT(waitid(P_ALL, 0, &info, 0));
    RESULT(waitid(9, 0, &info, WEXITED));
    return 0;
}
