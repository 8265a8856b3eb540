/*
 * wait(2): a child whose end sends another signal than SIGCHLD, or none, is found only with __WCLONE or __WALL; one
 * that sends SIGCHLD not with __WCLONE. After it executed a program, every child is an ordinary one.
 */
#include "contract.h"

static pid_t child_with(int signal, int code)
{
    pid_t child = syscall(SYS_clone, signal, 0, 0, 0, 0);
    need(child != -1);
    if (child == 0)
        _exit(code);
    return child;
}

static void ask(pid_t child, const char *what, int options)
{
    int status = 0;
    sleep_ms(30);
    pid_t got = waitpid(child, &status, options | WNOHANG);
    say("%s: %s %d", what, got == child ? "found" : got == 0 ? "not yet" : errno_name(errno),
        got > 0 ? WEXITSTATUS(status) : -1);
}

static void kinds(const char *title, int signal)
{
    say("-- %s", title);
    for (int i = 0; i < 2; i++) {
        pid_t child = child_with(signal, 5);
        ask(child, "plain", 0);
        if (kill(child, 0) == 0)
            ask(child, i ? "__WALL" : "__WCLONE", i ? __WALL : __WCLONE);
        if (kill(child, 0) == 0)
            ask(child, "__WALL in the end", __WALL);
    }
}

int main(int count, char **words)
{
    siginfo_t info;
    (void)words;
    if (count > 1) {
        sleep_ms(20);
        return 6;
    }
    signal(SIGUSR1, SIG_IGN);
    kinds("sends SIGCHLD", SIGCHLD);
    kinds("sends SIGUSR1", SIGUSR1);
    kinds("sends nothing", 0);
    section("any child");
    pid_t ordinary = child_with(SIGCHLD, 1), clone = child_with(0, 2);
    sleep_ms(50);
    say("plain: the ordinary one %d", waitpid(-1, NULL, 0) == ordinary);
    RESULT(waitpid(-1, NULL, WNOHANG));
    say("__WCLONE: the other %d", waitpid(-1, NULL, __WCLONE) == clone);
    RESULT(waitpid(-1, NULL, __WALL));
    section("waitid");
    clone = child_with(0, 3);
    sleep_ms(50);
    RESULT(waitid(P_PID, clone, &info, WEXITED | WNOHANG));
    RESULT(waitid(P_PID, clone, &info, WEXITED | __WCLONE));
    show("status", info.si_status);
    section("after an execution");
    clone = syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (clone == 0)
        execl("/proc/self/exe", "self", "child", NULL);
    sleep_ms(5);
    int status = 0;
    say("plain: found %d", waitpid(clone, &status, 0) == clone);
    show_status("child", status);
    return 0;
}
