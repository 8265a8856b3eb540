/*
 * mmap(2), madvise(2), fork(2): threads that write, throw away, protect, collapse, fork and copy parts of the same
 * 2 MiB pages at once lose no byte of what each owns, and what was thrown away is zeros.
 * contract: timeout=40
 */
#include "../contract.h"

#define HUGE (2UL << 20)
#define BLOCKS 2
#define SLICES 4
#define ROUNDS 60
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static unsigned char *area;
static volatile int stop;

/* Each writer owns the pages whose number is its own modulo SLICES. */
static void *writer(void *argument)
{
    size_t own = (size_t)argument;
    long bad = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        for (size_t page = own; page < BLOCKS * 512; page += SLICES)
            area[page * PAGE + own] = (unsigned char)round;
        if (round % 8 == 7)
            for (size_t page = own; page < BLOCKS * 512; page += SLICES * 16) {
                bad += madvise(area + page * PAGE, PAGE, MADV_DONTNEED) != 0;
                bad += area[page * PAGE + own] != 0;
                area[page * PAGE + own] = (unsigned char)round;
            }
        if (round % 8 == 3) {
            unsigned char *page = area + (own + SLICES * 20) * PAGE;
            bad += mprotect(page, PAGE, PROT_READ) != 0;
            bad += page[own] != (unsigned char)round;
            bad += mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0;
            page[own] = (unsigned char)round;
        }
        for (size_t page = own; page < BLOCKS * 512; page += SLICES)
            bad += area[page * PAGE + own] != (unsigned char)round;
    }
    return (void *)bad;
}

static void *collapser(void *unused)
{
    (void)unused;
    while (!stop) {
        madvise(area, BLOCKS * HUGE, MADV_COLLAPSE);
        sched_yield();
    }
    return NULL;
}

static void *copier(void *unused)
{
    (void)unused;
    unsigned char copy[256];
    long bad = 0;
    for (size_t page = 0; !stop; page = (page + 37) % (BLOCKS * 512)) {
        struct iovec own = { copy, sizeof copy }, theirs = { area + page * PAGE + 64, sizeof copy };
        bad += process_vm_readv(getpid(), &own, 1, &theirs, 1, 0) != sizeof copy;
        memset(copy, 0x5a, sizeof copy);
        /* A page that a writer has just made read-only refuses. */
        if (process_vm_writev(getpid(), &own, 1, &theirs, 1, 0) == -1)
            bad += errno != EFAULT;
    }
    return (void *)bad;
}

static void *forker(void *unused)
{
    (void)unused;
    long bad = 0;
    for (int round = 0; !stop && round < 12; round++) {
        pid_t child = fork();
        if (child == 0) {
            /* Not those that a writer makes read-only for a moment. */
            for (size_t page = SLICES * 21; page < BLOCKS * 512; page += 3)
                area[page * PAGE + 8] = 0xff;
            _exit(0);
        }
        bad += child == -1 || reap(child) != 0;
    }
    return (void *)bad;
}

int main(void)
{
    char *room = mmap(NULL, (BLOCKS + 1) * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(room != MAP_FAILED);
    area = (unsigned char *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));
    need(madvise(area, BLOCKS * HUGE, MADV_HUGEPAGE) == 0);
    for (size_t at = 0; at < BLOCKS * HUGE; at += PAGE)
        area[at + 2048] = 0x77;
    pthread_t writers[SLICES], others[3];
    for (size_t i = 0; i < SLICES; i++)
        need(pthread_create(&writers[i], NULL, writer, (void *)i) == 0);
    need(pthread_create(&others[0], NULL, collapser, NULL) == 0);
    need(pthread_create(&others[1], NULL, copier, NULL) == 0);
    need(pthread_create(&others[2], NULL, forker, NULL) == 0);
    void *bad;
    for (size_t i = 0; i < SLICES; i++) {
        need(pthread_join(writers[i], &bad) == 0);
        show("bad in a writer", (long)bad);
    }
    stop = 1;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        need(pthread_join(others[i], &bad) == 0);
        show("bad elsewhere", (long)bad);
    }
    long foreign = 0;
    for (size_t at = 0; at < BLOCKS * HUGE; at += PAGE)
        foreign += area[at + 8] != 0 || (area[at + 2048] != 0x77 && area[at + 2048] != 0);
    show("bytes of another process", foreign);
    RESULT(munmap(room, (BLOCKS + 1) * HUGE));
    return 0;
}
