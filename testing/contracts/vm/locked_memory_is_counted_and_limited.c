/*
 * mlock(2), mincore(2), getrlimit(2): memory is locked up to RLIMIT_MEMLOCK for the unprivileged (ENOMEM; EPERM
 * with a limit of 0), counted once per page, and the count goes with munlock, munmap and exec but not to a fork's
 * child.
 */
#include "contract.h"
#include <sys/resource.h>
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

static long locked(void)
{
    static char text[4096];
    need(get_file("/proc/self/status", text, sizeof text) > 0);
    const char *line = strstr(text, "VmLck:");
    return line ? atol(line + 6) : -1;
}

static int forked(void *unused)
{
    (void)unused;
    show("kB locked in a child", locked());
    return 0;
}

static int user(void *unused)
{
    (void)unused;
    struct rlimit limit = { 4 * PAGE, 4 * PAGE };
    need(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    char *at = fresh_pages(16);
    RESULT(mlock(at, 4 * PAGE));
    RESULT(mlock(at, 4 * PAGE));
    RESULT(mlock(at + 4 * PAGE, 1));
    show("kB locked", locked());
    in_child(forked, NULL);
    RESULT(munlock(at, PAGE));
    RESULT(mlock(at + 4 * PAGE, 1));
    RESULT(mlock(at + 5 * PAGE, 1));
    RESULT(munmap(at + 4 * PAGE, PAGE));
    show("kB locked", locked());
    RESULT(mlock(at + 8 * PAGE, 5 * PAGE));
    RESULT(mlockall(MCL_CURRENT));
    RESULT(mlockall(MCL_FUTURE));
    OUTCOME(mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
    RESULT(munlockall());
    show("kB locked", locked());
    OUTCOME(mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
    section("a limit of 0");
    struct rlimit none = { 0, 0 };
    need(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    RESULT(mlock(at + 8 * PAGE, 1));
    RESULT(mlockall(MCL_CURRENT));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
    RESULT(munlock(at, PAGE));
    return 0;
}

int main(void)
{
    char *at = fresh_pages(8);
    unsigned char vector[8];
    munmap(at + 4 * PAGE, PAGE);
    section("arguments of mlock");
    RESULT(mlock(at + 3 * PAGE, 2 * PAGE));
    RESULT(mlock(at + 4 * PAGE, PAGE));
    RESULT(munlock(at + 4 * PAGE, PAGE));
    RESULT(mlock(at, 0));
    RESULT(mlock(at + 1, 1));
    RESULT(mlock(at, -1UL));
    RESULT(munlock(at, -1UL));
    RESULT(munlock(at, 8 * PAGE));
    RESULT(munlock(at, 4 * PAGE));
    RESULT(syscall(SYS_mlock2, at, PAGE, 2));
    RESULT(syscall(SYS_mlock2, at, PAGE, MLOCK_ONFAULT));
    RESULT(mlockall(0));
    RESULT(mlockall(8));
    RESULT(mlockall(MCL_ONFAULT));
    section("arguments of mincore");
    RESULT(mincore(at + 1, PAGE, vector));
    RESULT(mincore(at, 5 * PAGE, vector));
    RESULT(mincore(at + 4 * PAGE, PAGE, vector));
    RESULT(mincore(at, PAGE, BAD_POINTER));
    RESULT(mincore(at, 0, vector));
    RESULT(mincore(at, -1UL, vector));
    RESULT(mincore(BAD_POINTER, PAGE, vector));
    section("an ordinary user");
    show_status("user", in_child(user, NULL));
    return 0;
}
