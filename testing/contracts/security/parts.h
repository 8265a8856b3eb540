/* For contracts about one call that changes very much memory: a thread that watches it from the same processor. */
#ifndef PARTS_H
#define PARTS_H

#include "security.h"

static struct notes { volatile int ready, stop, changing, turns; volatile long took; } *notes;

static void stay_on_the_first_processor(void)
{
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    need(sched_setaffinity(0, sizeof first, &first) == 0);
}

/* Wakes all the time, and counts how often it runs in the middle of a change. */
static int watch(void *unused)
{
    struct sched_param param = { .sched_priority = 10 };
    struct timespec little = { 0, 200000 };
    stay_on_the_first_processor();
    /* The C library refuses it. */
    need(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param) == 0);
    while (!notes->stop) {
        nanosleep(&little, NULL);
        notes->turns += notes->changing;
        notes->ready = 1;
    }
    return unused != NULL;
}

#endif
