/*
 * What the attempts of this area share: an ordinary user to make them as, a victim to make them at, and programs with
 * set-id bits made from the contract's own image.
 */
#ifndef SECURITY_H
#define SECURITY_H
#include "../contract.h"
#include <grp.h>
#include <sys/prctl.h>

#define NOBODY 65534

/* Becomes an ordinary user for good, who may look at himself as one who logged in may. */
static inline void become(uid_t uid, gid_t gid)
{
    need(setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0);
    need(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

static inline void become_nobody(void) { become(NOBODY, NOBODY); }

struct attempt { int (*body)(void *); void *argument; };

static inline int run_as_nobody(void *attempt)
{
    struct attempt *what = attempt;
    become_nobody();
    return what->body(what->argument);
}

/* Runs body(argument) in a child that is an ordinary user; its raw wait status. */
static inline int as_nobody(int (*body)(void *), void *argument)
{
    struct attempt what = { body, argument };
    return in_child(run_as_nobody, &what);
}

/* Copies this program to `path`, owned by these ids and with this mode. */
static inline void copy_self(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
    static char bytes[1 << 16];
    int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    ssize_t got;
    need(from != -1 && to != -1);
    while ((got = read(from, bytes, sizeof bytes)) > 0)
        need(write(to, bytes, got) == got);
    need(got == 0 && fchown(to, uid, gid) == 0 && fchmod(to, mode) == 0);
    close(from);
    close(to);
}

/* One byte through a pipe: that something has happened. */
static inline void tell(int fd) { need(write(fd, "!", 1) == 1); }
static inline void await(int fd)
{
    char byte;
    ssize_t got;
    while ((got = read(fd, &byte, 1)) == -1 && errno == EINTR)
        ;
    need(got == 1);
}

/* A child that has run `prepare` and then only waits to be killed. */
static inline pid_t start_victim(void (*prepare)(void))
{
    int ready[2];
    need(pipe(ready) == 0);
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        if (prepare)
            prepare();
        tell(ready[1]);
        for (;;)
            pause();
    }
    await(ready[0]);
    close(ready[0]);
    close(ready[1]);
    return child;
}

/* Ends a victim; how it had ended if it was not alive any more. */
static inline void end_victim(const char *who, pid_t victim)
{
    kill(victim, SIGKILL);
    show_status(who, reap(victim));
}

#endif
