/*
 * execve(2): caught signals go back to default, ignored ones and the mask and pending set stay, close-on-exec
 * closes.
 */
#include "../contract.h"

static void handler(int number) { (void)number; }

static int after_exec(char **arguments)
{
    struct sigaction action;
    sigset_t set;
    sigaction(SIGUSR1, NULL, &action);
    show("caught became default", action.sa_handler == SIG_DFL);
    sigaction(SIGUSR2, NULL, &action);
    show("ignored stays ignored", action.sa_handler == SIG_IGN);
    sigprocmask(SIG_BLOCK, NULL, &set);
    show("mask kept", sigismember(&set, SIGHUP));
    sigpending(&set);
    show("pending kept", sigismember(&set, SIGHUP));
    RESULT(fcntl(60, F_GETFD));
    RESULT(fcntl(61, F_GETFD));
    say("arguments %s %s, environment %s", arguments[0], arguments[1], getenv("COLOUR"));
    show("pid unchanged", atoi(arguments[2]) == getpid());
    show("umask kept", umask(0) == 031);
    stack_t stack;
    sigaltstack(NULL, &stack);
    show("alternate stack gone", stack.ss_flags == SS_DISABLE);
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1)
        return after_exec(arguments);
    static char alternate[16384];
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    char pid[16];
    sigset_t set;
    catch_signal(SIGUSR1, handler, 0);
    signal(SIGUSR2, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGHUP);
    need(sigaltstack(&stack, NULL) == 0);
    need(dup3(1, 60, O_CLOEXEC) == 60 && dup2(1, 61) == 61);
    umask(031);
    snprintf(pid, sizeof pid, "%d", getpid());
    char *const argv[] = { "new name", "second", pid, NULL }, *const environment[] = { "COLOUR=blue", NULL };
    execve("/proc/self/exe", argv, environment);
    need(!"exec returned");
}
