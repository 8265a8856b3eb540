/*
 * core(5), wait(2): the status has the core bit only when a dump was written: RLIMIT_CORE permits at least a page, the
 * program is dumpable, and the signal is one that dumps.
 */
#include "contract.h"
#include <sys/prctl.h>
#include <sys/resource.h>

static struct { rlim_t limit; int dumpable, signal; } how;

static int dies(void *unused)
{
    (void)unused;
    struct rlimit limit = { how.limit, RLIM_INFINITY };
    need(setrlimit(RLIMIT_CORE, &limit) == 0 && prctl(PR_SET_DUMPABLE, how.dumpable, 0, 0, 0) == 0);
    raise(how.signal);
    return 1;
}

static void tell(const char *what, rlim_t limit, int dumpable, int signal)
{
    how.limit = limit, how.dumpable = dumpable, how.signal = signal;
    siginfo_t info = { 0 };
    pid_t child = spawn(dies, NULL);
    need(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    int status = reap(child);
    say("%s: %s, core bit %d, %s", what, signal_name(WTERMSIG(status)), !!WCOREDUMP(status),
        info.si_code == CLD_DUMPED ? "CLD_DUMPED" : info.si_code == CLD_KILLED ? "CLD_KILLED" : "another code");
}

int main(void)
{
    scratch();
    tell("no limit", RLIM_INFINITY, 1, SIGSEGV);
    tell("limit 0", 0, 1, SIGSEGV);
    tell("limit 4095", 4095, 1, SIGABRT);
    tell("limit 65536", 65536, 1, SIGABRT);
    tell("not dumpable", RLIM_INFINITY, 0, SIGSEGV);
    tell("a signal without dump", RLIM_INFINITY, 1, SIGTERM);
    return 0;
}
