/*
 * contract: timeout=60
 * write(2), pwrite(2): writes to one file are made one at a time. A thread that shares its processor with a busy loop
 * has its turn all the same, however fast another one comes back: counted is how often that one wrote meanwhile.
 */
#include "contract.h"

#define TURNS 300
#define BYTES (64 * PAGE)
/* Far more than are written while the busy loop has the processor twice. */
#define MANY 1000

static int fd;
static volatile int ends;
static volatile unsigned long writes;
static char *text;

static void stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0);
}

static void *writes_on(void *unused)
{
    stay_on(1);
    while (!ends && pwrite(fd, text, BYTES, 0) == BYTES)
        writes++;
    return unused;
}

static void *counts(void *unused)
{
    static volatile unsigned long count;
    stay_on(0);
    while (!ends)
        count++;
    return unused;
}

int main(void)
{
    pthread_t writer, counter;
    int overtaken = 0;
    text = malloc(BYTES);
    fd = memfd_create("shared", 0);
    need(text != NULL && fd != -1 && pwrite(fd, text, BYTES, 0) == BYTES);
    stay_on(0);
    need(pthread_create(&writer, NULL, writes_on, NULL) == 0);
    need(pthread_create(&counter, NULL, counts, NULL) == 0);
    while (writes < 10)
        sched_yield();
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned long before = writes;
        need(pwrite(fd, text, 1, 0) == 1);
        overtaken += writes - before > MANY;
    }
    ends = 1;
    pthread_join(writer, NULL);
    pthread_join(counter, NULL);
    show("turns that a thousand writes of another came before", overtaken);
    return 0;
}
