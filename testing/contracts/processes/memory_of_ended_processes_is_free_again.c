/*
 * wait(2), proc(5) /proc/meminfo: most of what many processes took is free memory again soon after they were waited
 * for, also if no process begins afterwards.
 */
#include "../contract.h"

#define CHILDREN 600

static long free_kib(void)
{
    char line[128];
    long value = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    need(file != NULL);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "MemFree:", 8) == 0)
            value = atol(line + 8);
    fclose(file);
    need(value > 0);
    return value;
}

int main(void)
{
    static pid_t children[CHILDREN];
    long before = free_kib();
    for (int child = 0; child < CHILDREN; child++) {
        children[child] = fork();
        if (children[child] == 0)
            for (;;)
                pause();
        need(children[child] > 0);
    }
    sleep_ms(100);
    long taken = before - free_kib();
    check(taken > CHILDREN * 16, "a process takes more than 16 KiB");
    for (int child = 0; child < CHILDREN; child++)
        need(kill(children[child], SIGKILL) == 0);
    for (int child = 0; child < CHILDREN; child++)
        need(waitpid(children[child], NULL, 0) == children[child]);
    for (int tries = 0; tries < 30 && (before - free_kib()) * 4 >= taken; tries++)
        sleep_ms(100);
    check((before - free_kib()) * 4 < taken, "three quarters of it come back");
    return 0;
}
