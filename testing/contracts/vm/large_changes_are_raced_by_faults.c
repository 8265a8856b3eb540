/*
 * mprotect(2), madvise(2), munmap(2), mmap(2), mremap(2), fork(2) of much memory, beside threads that touch it all the
 * time: when the call returns it is done for all of it. No page that a change reached is as it was before, neither for
 * the caller nor for a thread that never stopped touching it.
 * contract: timeout=60
 */
#include "../contract.h"
#include <setjmp.h>
#include <sys/prctl.h>

#define PAGES 5120UL
#define SIZE (PAGES * PAGE)
#define TOUCHING 3
/* Every page but each STEP-th is written by the threads. */
#define STEP 16
#define ROUNDS 2

static char *volatile memory;
static volatile int stop, allowed;
static volatile long forbidden_writes, rounds_seen[TOUCHING];
static _Thread_local sigjmp_buf back;

static void missed(int number) { siglongjmp(back, number); }

/* Stores to a page; whether that was allowed. */
__attribute__((noinline)) static int store(char *place, unsigned long at, char value)
{
    if (sigsetjmp(back, 1))
        return 0;
    ((volatile char *)place)[at] = value;
    return 1;
}

/* What the first byte of a page is; -1 where none may be read. */
__attribute__((noinline)) static int first_of(unsigned long page)
{
    return sigsetjmp(back, 1) ? -1 : ((volatile char *)memory)[page * PAGE];
}

static void *touch(void *which)
{
    long number = (long)which;
    for (unsigned at = 1 + number; !stop; at = at * 5 + 1) {
        unsigned page = at % PAGES;
        char *place = memory;
        int was = allowed;
        /* Forbidden since before the store, and still after it. */
        if (page % STEP && place && store(place, page * PAGE, 'w') && !was && !allowed)
            __atomic_add_fetch(&forbidden_writes, 1, __ATOMIC_SEQ_CST);
        rounds_seen[number]++;
    }
    return NULL;
}

/* Whether each thread has gone on for a while. */
static void all_go_on(void)
{
    for (int number = 0; number < TOUCHING; number++)
        for (long seen = rounds_seen[number]; rounds_seen[number] < seen + 64;)
            sched_yield();
}

/* Every page is there; those that the threads do not write hold `value`. */
static void fill(char value)
{
    for (unsigned long page = 0; page < PAGES; page++)
        memory[page * PAGE] = page % STEP ? 'w' : value;
}

/* Kept pages that hold something else than `value`, or cannot be read. */
static int others_than(char value)
{
    int others = 0;
    for (unsigned long page = 0; page < PAGES; page += STEP)
        others += first_of(page) != value;
    return others;
}

static int writable(void)
{
    int count = 0;
    for (unsigned long page = 0; page < PAGES; page += STEP / 2)
        count += store(memory, page * PAGE + 8, 'w');
    return count;
}

static char *mapped(char *at)
{
    int fixed = at ? MAP_FIXED : 0;
    char *got = mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    need(got != MAP_FAILED);
    return got;
}

static void protection(void)
{
    int left = 0, lost = 0;
    for (int round = 0; round < ROUNDS; round++) {
        fill('a');
        need(mprotect(memory, SIZE, PROT_READ) == 0);
        allowed = 0;
        all_go_on();
        left += writable();
        lost += others_than('a');
        allowed = 1;
        need(mprotect(memory, SIZE, PROT_READ | PROT_WRITE) == 0);
    }
    show("pages written after mprotect", left);
    show("pages lost by mprotect", lost);
    show("by threads that never stopped", forbidden_writes);
}

static void discarding(void)
{
    int kept = 0;
    for (int round = 0; round < ROUNDS; round++) {
        fill('a');
        need(madvise(memory, SIZE, MADV_DONTNEED) == 0);
        kept += others_than(0);
    }
    show("pages kept by madvise", kept);
}

static void replacing(void)
{
    int kept = 0;
    for (int round = 0; round < ROUNDS; round++) {
        fill('a');
        mapped(memory);
        kept += others_than(0);
    }
    show("pages kept by mmap over them", kept);
}

/* A child has what was there, and nothing of what is written later on either side. */
static void copying(void)
{
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int go[2];
        char byte;
        fill('a');
        need(pipe(go) == 0);
        pid_t child = fork();
        need(child != -1);
        if (child == 0) {
            need(read(go[0], &byte, 1) == 1);
            int others = others_than('a');
            fill('c');
            _exit(others ? 1 : 0);
        }
        fill('p');
        need(write(go[1], "!", 1) == 1);
        wrong += WEXITSTATUS(reap(child)) + others_than('p');
        close(go[0]);
        close(go[1]);
    }
    show("pages seen across fork", wrong);
}

static void moving(void)
{
    int lost = 0, left = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char *room = mapped(NULL), *from = memory;
        unsigned char present;
        fill('a');
        need(mremap(from, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, room) == room);
        for (unsigned long page = 0; page < PAGES; page++)
            left += mincore(from + page * PAGE, PAGE, &present) == 0;
        memory = room;
        lost += others_than('a');
    }
    show("pages lost by mremap", lost);
    show("pages left by mremap", left);
}

static void unmapping(void)
{
    int left = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char *from = memory;
        unsigned char present;
        fill('a');
        need(munmap(from, SIZE) == 0);
        for (unsigned long page = 0; page < PAGES; page++)
            left += mincore(from + page * PAGE, PAGE, &present) == 0;
        memory = mapped(NULL);
        left += others_than(0);
    }
    show("pages left by munmap", left);
}

int main(void)
{
    pthread_t threads[TOUCHING];
    need(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    catch_signal(SIGSEGV, missed, SA_NODEFER);
    memory = mapped(NULL);
    allowed = 1;
    for (long number = 0; number < TOUCHING; number++)
        need(pthread_create(&threads[number], NULL, touch, (void *)number) == 0);
    protection();
    discarding();
    replacing();
    copying();
    moving();
    unmapping();
    stop = 1;
    for (int number = 0; number < TOUCHING; number++)
        pthread_join(threads[number], NULL);
    return 0;
}
