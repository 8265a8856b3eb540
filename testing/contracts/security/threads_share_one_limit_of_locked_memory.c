/*
 * mlock(2), RLIMIT_MEMLOCK: two threads of an ordinary user lock a half each of very many ranges at the same time, and
 * the limit has room for one half.
 * contract: timeout=60
 */
#include "security.h"
#include <sys/resource.h>

#define PAGE 4096UL
#define HALF 4000UL
#define ROUNDS 100

static char *memory;
static pthread_barrier_t gate;
static int locked[2];

static void *lock_half(void *which)
{
    long half = (long)which;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&gate);
        locked[half] = mlock(memory + half * HALF * PAGE, HALF * PAGE) == 0;
        pthread_barrier_wait(&gate);
        pthread_barrier_wait(&gate);
    }
    return NULL;
}

static int attempt(void *unused)
{
    (void)unused;
    pthread_t other;
    int both = 0, none = 0;
    memory = mmap(NULL, 2 * HALF * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED);
    /* Every page is a range of its own. */
    for (unsigned long page = 0; page < 2 * HALF; page += 2)
        need(mprotect(memory + page * PAGE, PAGE, PROT_READ) == 0);
    need(pthread_barrier_init(&gate, NULL, 2) == 0 && pthread_create(&other, NULL, lock_half, (void *)1) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&gate);
        locked[0] = mlock(memory, HALF * PAGE) == 0;
        pthread_barrier_wait(&gate);
        both += locked[0] && locked[1];
        none += !locked[0] && !locked[1];
        need(munlock(memory, 2 * HALF * PAGE) == 0);
        pthread_barrier_wait(&gate);
    }
    say("both halves were locked in %d rounds, none in %d", both, none);
    return 0;
}

int main(void)
{
    struct rlimit limit = { HALF * PAGE + (64 << 10), HALF * PAGE + (64 << 10) };
    need(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    need(as_nobody(attempt, NULL) == 0);
    return 0;
}
