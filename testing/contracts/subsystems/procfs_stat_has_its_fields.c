/*
 * proc(5): /proc/pid/stat gives pid, name in parentheses, state, parent, group, session and numbers in fixed
 * places.
 */
#include "../contract.h"

static char state_of(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (get_file(path, text, sizeof text) <= 0)
        return '-';
    return strrchr(text, ')')[2];
}

static int sleeper(void *unused) { (void)unused; for (;;) pause(); return 0; }

int main(void)
{
    char text[1024], state;
    int pid, parent, group, session, fields = 0;
    need(get_file("/proc/self/stat", text, sizeof text) > 0);
    char *after = strrchr(text, ')');
    need(after && sscanf(text, "%d", &pid) == 1);
    need(sscanf(after + 2, "%c %d %d %d", &state, &parent, &group, &session) == 4);
    say("pid %d parent %d group %d session %d state %c", pid == getpid(), parent == getppid(), group == getpgrp(),
        session == getsid(0), state);
    for (char *at = after + 2; at && *at && *at != '\n'; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        fields++;
    show("fields after the name", fields);
    pid_t child = spawn(sleeper, NULL);
    for (int i = 0; i < 200 && state_of(child) != 'S'; i++)
        sleep_ms(2);
    say("sleeping %c", state_of(child));
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    say("stopped %c", state_of(child));
    kill(child, SIGKILL);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    say("zombie %c", state_of(child));
    reap(child);
    say("reaped %c", state_of(child));
    return 0;
}
