/* wait4(2), waitid(2): options, kinds of ids and pointers that are refused, before and after a child exists. */
#include "contract.h"
#include <sys/resource.h>

static long by_id(int kind, pid_t id, void *info, int options)
{
    return syscall(SYS_waitid, kind, id, info, options, NULL);
}
static long four(pid_t pid, void *status, int options, void *usage)
{
    return syscall(SYS_wait4, pid, status, options, usage);
}

static int leave(void *status) { return *(int *)status; }

static void both(void)
{
    siginfo_t info;
    RESULT(by_id(P_ALL, 0, &info, 0));
    RESULT(by_id(P_ALL, 0, &info, WNOHANG));
    RESULT(by_id(P_ALL, 0, &info, WEXITED | 0x100));
    RESULT(by_id(77, 0, &info, WEXITED | WNOHANG));
    RESULT(by_id(P_PID, 0, &info, WEXITED | WNOHANG));
    RESULT(by_id(P_PID, -5, &info, WEXITED | WNOHANG));
    RESULT(by_id(P_PGID, -5, &info, WEXITED | WNOHANG));
    RESULT(by_id(P_PID, 0x3fffffff, &info, WEXITED | WNOHANG));
    RESULT(by_id(P_PGID, 0x3fffffff, &info, WEXITED | WNOHANG));
    RESULT(four(-1, NULL, 0x100, NULL));
    RESULT(four(-1, NULL, WEXITED, NULL));
    RESULT(four(-1, NULL, WNOWAIT, NULL));
    RESULT(four(INT_MIN, NULL, WNOHANG, NULL));
    RESULT(four(0x3fffffff, NULL, WNOHANG, NULL));
    RESULT(four(-0x3fffffff, NULL, WNOHANG, NULL));
}

int main(void)
{
    int status = 3;
    siginfo_t info;
    section("without a child");
    both();
    RESULT(by_id(P_ALL, 0, &info, WEXITED | WNOHANG));
    RESULT(four(-1, NULL, WNOHANG, NULL));
    section("with a child");
    pid_t child = spawn(leave, &status);
    both();
    RESULT(by_id(P_PID, child, &info, WEXITED | WNOWAIT));
    RESULT(by_id(P_PID, child, NULL, WEXITED | WNOWAIT));
    RESULT(by_id(P_PID, child, BAD_POINTER, WEXITED | WNOWAIT));
    RESULT(by_id(P_PID, child, &info, WSTOPPED | WNOHANG));
    show("pid of nothing", info.si_pid);
    RESULT(four(child, NULL, __WNOTHREAD | WNOHANG, BAD_POINTER));
    RESULT(four(child, NULL, WNOHANG, NULL));
    child = spawn(leave, &status);
    sleep_ms(50);
    RESULT(four(child, BAD_POINTER, 0, NULL));
    RESULT(four(child, &status, 0, NULL));
    section("getrusage");
    struct rusage usage;
    RESULT(getrusage(7, &usage));
    RESULT(getrusage(-2, &usage));
    RESULT(getrusage(7, BAD_POINTER));
    RESULT(getrusage(RUSAGE_THREAD, BAD_POINTER));
    return 0;
}
