/*
 * execve(2), prctl(2), personality(2): a set-user-ID or set-group-ID program is not dumpable and starts without its
 * caller's parent death signal, address layout and oversized stack; one that cannot be read is not dumpable either.
 */
#include "security.h"
#include <sys/personality.h>
#include <sys/resource.h>

static int report(void)
{
    int death = -1;
    struct rlimit stack;
    need(prctl(PR_GET_PDEATHSIG, &death) == 0 && getrlimit(RLIMIT_STACK, &stack) == 0);
    say("effective %d %d, dumpable %d, death signal %d, personality %x, stack %lld KiB", (int)geteuid(), (int)getegid(),
        prctl(PR_GET_DUMPABLE), death, personality(0xffffffff), (long long)stack.rlim_cur >> 10);
    return 0;
}

static int attempt(void *path)
{
    struct rlimit stack = { 64 << 20, RLIM_INFINITY };
    need(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0 && personality(ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT) != -1);
    need(setrlimit(RLIMIT_STACK, &stack) == 0);
    execl(path, "program", "report", NULL);
    return 99;
}

static int without_new_privileges(void *path)
{
    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    return attempt(path);
}

static int from_fresh_ids(void *path)
{
    need(setresuid(NOBODY, NOBODY, NOBODY) == 0);
    return attempt(path);
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return report();
    scratch();
    copy_self("plain", 0, 0, 0755);
    copy_self("setuid", 1000, 0, 04755);
    copy_self("setgid", 0, 1000, 02755);
    copy_self("own", NOBODY, NOBODY, 06755);
    copy_self("unreadable", 0, 0, 0711);
    copy_self("locking", 0, 1000, 02745);
    static const char *const paths[] = { "./plain", "./setuid", "./setgid", "./own", "./unreadable", "./locking" };
    for (size_t at = 0; at < COUNT_OF(paths); at++) {
        section(paths[at]);
        as_nobody(attempt, (void *)paths[at]);
    }
    section("no new privileges");
    as_nobody(without_new_privileges, "./setuid");
    section("by a process whose ids changed");
    in_child(from_fresh_ids, "./plain");
    return 0;
}
