/*
 * fork(2), proc(5): each living process has its own pid, getpid and gettid agree with /proc, and a reaped pid is
 * gone.
 */
#include "../contract.h"

static int sleeper(void *unused) { (void)unused; pause(); return 0; }

int main(void)
{
    pid_t pids[20];
    int duplicates = 0, listed = 0, own = 0;
    char path[64];
    for (int i = 0; i < 20; i++) {
        pids[i] = spawn(sleeper, NULL);
        for (int j = 0; j < i; j++)
            duplicates += pids[i] == pids[j];
        own += pids[i] == getpid();
    }
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "/proc/%d", pids[i]);
        listed += access(path, F_OK) == 0;
    }
    say("duplicates %d own %d listed %d", duplicates, own, listed);
    for (int i = 0; i < 20; i++) {
        kill(pids[i], SIGKILL);
        reap(pids[i]);
    }
    int gone = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "/proc/%d", pids[i]);
        gone += access(path, F_OK) == -1 && kill(pids[i], 0) == -1 && errno == ESRCH;
    }
    show("gone", gone);
    pid_t next = spawn(sleeper, NULL);
    int reused = 0;
    for (int i = 0; i < 20; i++)
        reused += next == pids[i];
    show("reused at once", reused);
    kill(next, SIGKILL);
    reap(next);
    return 0;
}
