/*
 * process_vm_readv(2), ptrace(2) "Ptrace access mode checking": all six ids must be the caller's real ids, the process
 * dumpable, and its capabilities the caller's too.
 */
#include "security.h"
#include <linux/capability.h>

static char secret[16] = "secret";

static void stay_root(void) { }
static void same_ids(void) { become_nobody(); }
static void another_group(void) { become(NOBODY, 1000); }
static void another_user(void) { become(1000, NOBODY); }
static void not_dumpable(void)
{
    become_nobody();
    need(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
}
static void another_effective_user(void)
{
    need(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, 1000, NOBODY) == 0);
    need(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}
static void another_saved_group(void)
{
    need(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, 0) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    need(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}
static void with_capabilities(void)
{
    need(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
    become_nobody();
}
static void with_fresh_ids(void)
{
    need(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
}
static void child_of_fresh_ids(void)
{
    with_fresh_ids();
    pid_t child = fork();
    need(child != -1);
    if (child) {
        /* The victim is the child; what waits for this process sees it end with the child. */
        int status;
        waitpid(child, &status, 0);
        _exit(0);
    }
}

static int attempt(void *victim)
{
    char bytes[sizeof secret] = "";
    struct iovec local = { bytes, sizeof bytes }, remote = { secret, sizeof bytes };
    pid_t pid = *(pid_t *)victim;
    RESULT(process_vm_readv(pid, &local, 1, &remote, 1, 0));
    say("read %s", strcmp(bytes, secret) ? "nothing" : "the secret");
    strcpy(bytes, "forged");
    RESULT(process_vm_writev(pid, &local, 1, &remote, 1, 0));
    return 0;
}

int main(void)
{
    static const struct { const char *name; void (*prepare)(void); } victims[] = {
        { "root", stay_root }, { "the same ids", same_ids }, { "another group", another_group },
        { "another user", another_user }, { "another effective user", another_effective_user },
        { "another saved group", another_saved_group }, { "not dumpable", not_dumpable },
        { "with capabilities", with_capabilities }, { "ids changed and nothing executed since", with_fresh_ids },
    };
    for (size_t at = 0; at < COUNT_OF(victims); at++) {
        section(victims[at].name);
        pid_t victim = start_victim(victims[at].prepare);
        as_nobody(attempt, &victim);
        kill(victim, SIGKILL);
        reap(victim);
    }
    (void)child_of_fresh_ids;
    return 0;
}
