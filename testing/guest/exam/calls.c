/* Programs that make ordinary calls, many of them or with arguments that are wrong. */
#include "exam.h"

/* Statistics of the system, as a monitor asks for them. */
void statistics(void) {
    struct sysinfo info;
    for (int round = 0; round < 3; round++) sysinfo(&info);
}

/* An address that is not the program's. */
void wild_argument(void) {
    if (syscall(SYS_sysinfo, (void *)0x5a5a1000) != -1 || errno != EFAULT) puts("a bad address was taken");
}

static void *renames(void *which) {
    for (int round = 0; round < 200; round++) {
        if (which) setdomainname("exam", 4);
        else sethostname("exam", 4);
    }
    return 0;
}

/* Host and domain name are set at the same time. */
void names(void) {
    pthread_t other;
    if (pthread_create(&other, 0, renames, (void *)1) != 0) exit(2);
    renames(0);
    pthread_join(other, 0);
}

static char records[2000 * PAGE];

/*
 * Pipes are made and closed again, by a service that must not be ended for its memory (as sshd is) and that keeps
 * records of what it did. Without memory for a pipe it goes on, as a service does.
 */
void pipes(void) {
    int adjust = open("/proc/self/oom_score_adj", O_WRONLY);
    if (adjust == -1 || write(adjust, "-1000", 5) != 5) exit(2);
    close(adjust);
    for (int round = 0; round < 6000; round++) {
        records[round / 3 * PAGE] = 1;
        int ends[2];
        if (pipe(ends) != 0) continue;
        close(ends[0]);
        close(ends[1]);
    }
}
