/*
 * The init that runs many programs one after the other, for the contracts and the third-party suites.
 *
 * /etc/kwab/jobs has one job per line, fields separated by tabs: name, seconds, then the words of the command. Each
 * runs in a session of its own, in a fresh folder on the tmpfs, with standard input from /dev/null and the console as
 * output, between two lines that the host reads:
 *
 *     CONTRACT-BEGIN <name>
 *     CONTRACT-END <name> exit|signal|timeout <number>
 *
 * It leans on as little of the kernel as possible: no signals, no timers, only fork, exec, wait, kill and sleep.
 */
#include "pid1.h"

#include <ftw.h>
#include <signal.h>
#include <time.h>

enum { MAX_WORDS = 64 };

static const char *const environment[] = {"PATH=/bin:/sbin", "HOME=/", 0};

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void nap(long milliseconds) {
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&pause, 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    remove(path);
    return 0;
}

/* A folder that nothing was in before. The number keeps a job whose leftovers cannot be removed from its successor. */
static void fresh_folder(char *path, size_t size, unsigned number) {
    snprintf(path, size, "/tmp/job%u", number);
    mkdir(path, 0755);
}

static void become(char **words, const char *folder) {
    setsid();
    int null = open("/dev/null", O_RDONLY);
    if (null > 0) {
        dup2(null, 0);
        close(null);
    }
    if (chdir(folder) == -1) dprintf(2, "runner: %s: %s\n", folder, strerror(errno));
    execve(words[0], words, (char *const *)environment);
    dprintf(2, "runner: %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Ends whatever a job left behind, and its zombies, within a second. */
static void sweep(pid_t child) {
    kill(-child, SIGKILL);
    kill(-1, SIGKILL);
    for (double end = seconds_now() + 1; seconds_now() < end;) {
        pid_t gone = waitpid(-1, 0, WNOHANG);
        if (gone == -1) return;
        if (gone == 0) nap(1);
    }
}

static void run_job(const char *name, double limit, char **words, unsigned number) {
    char folder[64];
    fresh_folder(folder, sizeof folder, number);
    dprintf(1, "\nCONTRACT-BEGIN %s\n", name);
    double end = seconds_now() + limit;
    pid_t child = fork();
    if (child == 0) become(words, folder);
    int status = 0, late = 0;
    pid_t gone = 0;
    for (long wait = 1; child > 0 && gone != child && !late;) {
        gone = waitpid(-1, &status, WNOHANG);
        if (gone == -1) break;
        if (gone == 0) {
            nap(wait);
            if (wait < 16) wait *= 2;
            late = seconds_now() > end;
        }
    }
    if (child > 0) sweep(child);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (child == -1) dprintf(1, "\nCONTRACT-END %s exit %d\n", name, 126);
    else if (gone != child) dprintf(1, "\nCONTRACT-END %s timeout %d\n", name, (int)limit);
    else if (WIFSIGNALED(status)) dprintf(1, "\nCONTRACT-END %s signal %d\n", name, WTERMSIG(status));
    else dprintf(1, "\nCONTRACT-END %s exit %d\n", name, WEXITSTATUS(status));
}

int main(void) {
    pid1_prepare();
    size_t size = 0;
    char *text = pid1_read("/etc/kwab/jobs", &size), *rest = 0;
    if (!text) {
        dprintf(2, "runner: /etc/kwab/jobs is missing\n");
        pid1_finish(125);
    }
    unsigned number = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(0, "\n", &rest)) {
        char *fields[MAX_WORDS + 3], *more = 0;
        int count = 0;
        for (char *field = strtok_r(line, "\t", &more); field && count < MAX_WORDS + 2;
            field = strtok_r(0, "\t", &more))
            fields[count++] = field;
        fields[count] = 0;
        if (count >= 3) run_job(fields[0], atof(fields[1]), fields + 2, number++);
    }
    pid1_finish(0);
}
