/* For contracts about the pool of 2 MiB pages. */
#ifndef POOL_H
#define POOL_H

#include "../contract.h"

#define HUGE (2UL << 20)

/* A value of /proc/meminfo, in the unit that it has there; -1 without it. */
static long meminfo(const char *name)
{
    char line[128];
    long value = -1;
    size_t length = strlen(name);
    FILE *file = fopen("/proc/meminfo", "r");
    need(file != NULL);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            value = atol(line + length + 1);
    fclose(file);
    return value;
}

/* Says how many pages the pool has, and who has them. */
static void pool(const char *when)
{
    say("%s: total %ld, free %ld, reserved %ld, surplus %ld", when, meminfo("HugePages_Total"),
        meminfo("HugePages_Free"), meminfo("HugePages_Rsvd"), meminfo("HugePages_Surp"));
}

#endif
