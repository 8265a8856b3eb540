/*
 * clone(2), CLONE_SIGHAND; execve(2): a program executed by a task that shared its table of signal handlers has a table
 * of its own, so that no other task changes its signal dispositions.
 */
#include "security.h"

static int changed[2], done[2];

static int child(void *path)
{
    char number[3][12];
    snprintf(number[0], 12, "%d", done[1]);
    snprintf(number[1], 12, "%d", changed[0]);
    execl(path, "program", number[0], number[1], NULL);
    _exit(99);
}

static int program(int tell_to, int await_from)
{
    struct sigaction action;
    tell(tell_to);
    await(await_from);
    need(sigaction(SIGUSR1, NULL, &action) == 0);
    say("SIGUSR1 in the program: %s", action.sa_handler == SIG_DFL ? "default" : "a handler");
    need(sigaction(SIGTERM, NULL, &action) == 0);
    say("SIGTERM in the program: %s", action.sa_handler == SIG_DFL ? "default" : "a handler");
    need(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
    return 0;
}

static int attempt(void *path)
{
    static char stack[65536] __attribute__((aligned(16)));
    need(pipe(changed) == 0 && pipe(done) == 0);
    pid_t pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_SIGHAND | SIGCHLD, path);
    need(pid != -1);
    await(done[0]);
    struct sigaction action = { .sa_handler = (void (*)(int))0x400000 };
    need(sigaction(SIGUSR1, &action, NULL) == 0);
    need(signal(SIGTERM, SIG_IGN) != SIG_ERR);
    tell(changed[1]);
    show_status("program", reap(pid));
    need(sigaction(SIGUSR2, NULL, &action) == 0);
    show("the caller's own SIGUSR2 is default", action.sa_handler == SIG_DFL);
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 2)
        return program(atoi(arguments[1]), atoi(arguments[2]));
    scratch();
    copy_self("program", 1000, 1000, 04755);
    copy_self("plain", 0, 0, 0755);
    show_status("set-user-ID", as_nobody(attempt, "./program"));
    show_status("plain", as_nobody(attempt, "./plain"));
    return 0;
}
