/* prctl(2): values and unused arguments that each option refuses, and what the options read back. */
#include "contract.h"
#include <sys/prctl.h>
#ifndef PR_SET_THP_DISABLE
#define PR_SET_THP_DISABLE 41
#define PR_GET_THP_DISABLE 42
#endif

#define TRY(option, ...) say("%s(%s) = %s", #option, #__VA_ARGS__, answer(syscall(SYS_prctl, option, __VA_ARGS__)))
static const char *answer(long value)
{
    static char text[32];
    if (value == -1)
        return errno_name(errno);
    snprintf(text, sizeof text, "%ld", value);
    return text;
}

int main(void)
{
    TRY(PR_SET_PDEATHSIG, 65, 0, 0, 0);
    TRY(PR_SET_PDEATHSIG, -1L, 0, 0, 0);
    TRY(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
    TRY(PR_GET_PDEATHSIG, BAD_POINTER, 0, 0, 0);
    TRY(PR_SET_DUMPABLE, 2, 0, 0, 0);
    TRY(PR_SET_DUMPABLE, 3, 0, 0, 0);
    TRY(PR_SET_DUMPABLE, 0, 0, 0, 0);
    TRY(PR_GET_DUMPABLE, 0, 0, 0, 0);
    TRY(PR_SET_DUMPABLE, 1, 0, 0, 0);
    TRY(PR_SET_KEEPCAPS, 2, 0, 0, 0);
    TRY(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    TRY(PR_GET_KEEPCAPS, 0, 0, 0, 0);
    TRY(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    TRY(PR_SET_TIMING, 1, 0, 0, 0);
    TRY(PR_SET_TIMING, 0, 0, 0, 0);
    TRY(PR_GET_TIMING, 0, 0, 0, 0);
    TRY(PR_SET_NAME, BAD_POINTER, 0, 0, 0);
    TRY(PR_GET_NAME, BAD_POINTER, 0, 0, 0);
    TRY(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    TRY(PR_SET_TIMERSLACK, 70000, 0, 0, 0);
    TRY(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    TRY(PR_SET_TIMERSLACK, 0, 0, 0, 0);
    TRY(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    TRY(PR_SET_CHILD_SUBREAPER, 5, 0, 0, 0);
    TRY(PR_GET_CHILD_SUBREAPER, BAD_POINTER, 0, 0, 0);
    TRY(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    TRY(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    TRY(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0);
    TRY(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
    TRY(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0);
    TRY(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 1);
    TRY(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    TRY(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    TRY(PR_SET_THP_DISABLE, 1, 1, 0, 0);
    TRY(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    TRY(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    TRY(PR_GET_THP_DISABLE, 1, 0, 0, 0);
    TRY(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    TRY(PR_CAPBSET_READ, 0, 0, 0, 0);
    TRY(PR_CAPBSET_READ, 64, 0, 0, 0);
    TRY(PR_CAPBSET_DROP, 64, 0, 0, 0);
    TRY(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 64, 0, 0);
    TRY(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 0, 0, 0);
    TRY(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 0, 1, 0);
    TRY(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0);
    TRY(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    TRY(PR_CAP_AMBIENT, 9, 0, 0, 0);
    TRY(PR_GET_UNALIGN, BAD_POINTER, 0, 0, 0);
    TRY(PR_GET_SECCOMP, 0, 0, 0, 0);
    TRY(PR_GET_TSC, BAD_POINTER, 0, 0, 0);
    TRY(PR_SET_TSC, 3, 0, 0, 0);
    TRY(PR_MCE_KILL, 9, 0, 0, 0);
    TRY(PR_MCE_KILL_GET, 0, 0, 0, 0);
    TRY(PR_MCE_KILL_GET, 1, 0, 0, 0);
    TRY(-1, 0, 0, 0, 0);
    TRY(9999, 0, 0, 0, 0);
    return 0;
}
