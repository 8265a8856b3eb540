/* proc(5): /proc/self/status has name, state, ids, groups, threads, and signal masks as hexadecimal words. */
#include "../contract.h"
#include <sys/prctl.h>

static char text[4096];

static void field(const char *name)
{
    char key[32];
    snprintf(key, sizeof key, "\n%s:\t", name);
    char *at = strstr(text, key);
    if (!at) {
        say("%s is absent", name);
        return;
    }
    at += strlen(key);
    say("%s: %.*s", name, (int)strcspn(at, "\n"), at);
}

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR1, SIG_IGN);
    prctl(PR_SET_NAME, "a name");
    umask(027);
    text[0] = '\n';
    need(get_file("/proc/self/status", text + 1, sizeof text - 1) > 0);
    const char *fields[] = { "Name", "Umask", "State", "Uid", "Gid", "Threads", "SigBlk", "SigIgn", "SigCgt",
        "NoNewPrivs" };
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        field(fields[i]);
    char *pid = strstr(text, "\nPid:\t"), *parent = strstr(text, "\nPPid:\t");
    say("pid right %d parent right %d", pid && atoi(pid + 6) == getpid(), parent && atoi(parent + 7) == getppid());
    say("memory lines present %d",
        strstr(text, "\nVmSize:\t") && strstr(text, "\nVmRSS:\t") && strstr(text, "\nVmData:\t"));
    return 0;
}
