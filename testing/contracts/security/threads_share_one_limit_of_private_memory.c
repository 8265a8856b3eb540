/*
 * setrlimit(2), RLIMIT_DATA: two threads of an ordinary user make a half each of much memory private and writable at
 * the same time, and the limit has room for one half.
 * contract: timeout=60
 */
#include "security.h"
#include <sys/resource.h>

#define HALF 4096UL
#define ROUNDS 100
/* Ranges beside it, all of which are counted each time. */
#define RANGES 16000UL

static char *memory;
static int arrived;
static int made[2];

/* Waits for the other thread without sleeping: both go on in the same moment. */
static void meet(void)
{
    int turn = (__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST) | 1) + 1;
    while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < turn)
        ;
}

static void *write_half(void *which)
{
    long half = (long)which;
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        made[half] = mprotect(memory + half * HALF * PAGE, HALF * PAGE, PROT_READ | PROT_WRITE) == 0;
        meet();
        meet();
    }
    return NULL;
}

/* Bytes of private writable memory. */
static unsigned long data(void)
{
    static char text[8192];
    char *line;
    need(get_file("/proc/self/status", text, sizeof text) > 0 && (line = strstr(text, "VmData:")));
    return strtoul(line + 7, NULL, 10) << 10;
}

static int attempt(void *unused)
{
    (void)unused;
    pthread_t other;
    int both = 0, none = 0;
    memory = mmap(NULL, 2 * HALF * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED && madvise(memory, 2 * HALF * PAGE, MADV_NOHUGEPAGE) == 0);
    for (unsigned long page = 0; page < 2 * HALF; page++)
        memory[page * PAGE] = 1;
    need(mprotect(memory, 2 * HALF * PAGE, PROT_READ) == 0);
    need(pthread_create(&other, NULL, write_half, (void *)1) == 0);
    char *ranges = mmap(NULL, 2 * RANGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(ranges != MAP_FAILED);
    for (unsigned long range = 0; range < RANGES; range++)
        need(mprotect(ranges + 2 * range * PAGE, PAGE, PROT_READ) == 0);
    unsigned long most = data() + HALF * PAGE + (64 << 10);
    need(setrlimit(RLIMIT_DATA, &(struct rlimit){ most, most }) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        made[0] = mprotect(memory, HALF * PAGE, PROT_READ | PROT_WRITE) == 0;
        meet();
        both += made[0] && made[1];
        none += !made[0] && !made[1];
        need(mprotect(memory, 2 * HALF * PAGE, PROT_READ) == 0);
        meet();
    }
    say("both halves were writable in %d rounds, none in %d", both, none);
    return 0;
}

int main(void)
{
    need(as_nobody(attempt, NULL) == 0);
    return 0;
}
