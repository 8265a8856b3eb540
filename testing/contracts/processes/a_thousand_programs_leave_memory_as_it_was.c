/*
 * execve(2), exit(2): what a program held is given back when it ends; a thousand of them later as much memory is free
 * as before. The margin covers what a kernel may keep for itself (caches of processes and of lists).
 *
 * contract: timeout=60
 */
#include "../contract.h"

enum { PROGRAMS = 1000, MARGIN_KIB = 2048 };

static long free_kib(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kib = -1;
    need(file != NULL);
    while (kib == -1 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemFree: %ld", &kib) != 1)
            kib = -1;
    fclose(file);
    need(kib != -1);
    return kib;
}

static void run_one(void)
{
    char *const words[] = { "/bin/true", NULL }, *const environment[] = { NULL };
    int status;
    pid_t child = fork();
    if (child == 0) {
        execve(words[0], words, environment);
        _exit(127);
    }
    need(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    for (int i = 0; i < 50; i++)
        run_one();
    long before = free_kib();
    for (int i = 0; i < PROGRAMS; i++)
        run_one();
    check(before - free_kib() < MARGIN_KIB, "free memory is back");
    return 0;
}
