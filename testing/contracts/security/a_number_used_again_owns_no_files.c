/*
 * fcntl(2), F_SETOWN: the owner of a file is the process, group or thread that was named; one that gets its number when
 * it is gone gets none of its signals.
 */
#include "security.h"
#include <linux/sched.h>

static int ends[2];
static sigset_t set;

static pid_t fork_as(pid_t id)
{
    struct clone_args args = { .exit_signal = SIGCHLD };
    if (id) {
        args.set_tid = (unsigned long)&id;
        args.set_tid_size = 1;
    }
    pid_t child = syscall(SYS_clone3, &args, sizeof args);
    need(child != -1);
    return child;
}

static int told(void)
{
    struct timespec none = { 0, 0 };
    siginfo_t info;
    return sigtimedwait(&set, &info, &none) == SIGIO;
}

/* Waits for a byte, then leads a group (or not) until it is told to say whether it got the signal. */
static void runs(int *go, int *done, int leads)
{
    if (leads)
        need(setpgid(0, 0) == 0);
    tell(done[1]);
    await(go[0]);
    say("told: %d", told());
    _exit(0);
}

static void owner_is(const char *what, int type, int leads)
{
    struct f_owner_ex owner = { type, 0 };
    int go[2], done[2];
    need(pipe(go) == 0 && pipe(done) == 0);
    section(what);
    for (pid_t id = 0, round = 0; round < 2; round++) {
        pid_t child = fork_as(id);
        if (child == 0)
            runs(go, done, leads);
        await(done[0]);
        if (round == 0) {
            owner.pid = id = child;
            RESULT(fcntl(ends[0], F_SETOWN_EX, &owner));
        }
        show("the same number", child == id);
        need(fcntl(ends[0], F_GETOWN_EX, &owner) == 0);
        show("has an owner", owner.pid != 0);
        need(write(ends[1], "x", 1) == 1);
        tell(go[1]);
        need(reap(child) == 0);
    }
    close(go[0]), close(go[1]), close(done[0]), close(done[1]);
}

int main(void)
{
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigprocmask(SIG_BLOCK, &set, NULL);
    need(pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_ASYNC) == 0);
    owner_is("a process", 1, 0);
    owner_is("a thread", 0, 0);
    owner_is("a group", 2, 1);
    return 0;
}
