/*
 * mremap(2), munmap(2), mmap(2), madvise(2), fork(2), process_vm_writev(2): two threads that move, cut, replace,
 * collapse, copy and write parts of the same 2 MiB pages lose no byte of what stays, see zeros where memory is new, and
 * never a byte of another place.
 * contract: timeout=50
 */
#include "../contract.h"

#define HUGE (2UL << 20)
#define ROUNDS 120
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static unsigned char *area, *target;
static volatile int stop;
static pthread_barrier_t both;

/* Every page of a block begins with its number and ends with it. */
static void fill(unsigned char *block)
{
    for (size_t page = 0; page < 512; page++) {
        *(unsigned short *)(block + page * PAGE) = (unsigned short)(page + 1);
        *(unsigned short *)(block + page * PAGE + PAGE - 2) = (unsigned short)(page + 1);
    }
}

static long wrong(const unsigned char *block, size_t from, size_t to)
{
    long count = 0;
    for (size_t page = from; page < to; page++)
        count += *(unsigned short *)(block + page * PAGE) != page + 1 ||
                 *(unsigned short *)(block + page * PAGE + PAGE - 2) != page + 1;
    return count;
}

static unsigned char *block(void)
{
    unsigned char *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(room != MAP_FAILED);
    unsigned char *at = (unsigned char *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));
    need(at == room || munmap(room, at - room) == 0);
    need(at == room + HUGE || munmap(at + HUGE, room + HUGE - at) == 0);
    need(madvise(at, HUGE, MADV_HUGEPAGE) == 0);
    return at;
}

/* Moves the upper half away and back, again and again. */
static void *mover(void *unused)
{
    (void)unused;
    long bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t from = 256 + round % 7, len = 100;
        unsigned char *part = area + from * PAGE, *there = target + (round % 3) * PAGE;
        bad += mremap(part, len * PAGE, len * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there) != there;
        bad += *(unsigned short *)there != from + 1 || *(unsigned short *)(there + 99 * PAGE) != from + 100;
        bad += mremap(there, len * PAGE, len * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, part) != part;
    }
    stop = 1;
    return (void *)bad;
}

static void *changer(void *unused)
{
    (void)unused;
    long bad = 0;
    for (unsigned round = 0; !stop; round++) {
        /* Where the other is moving it may not be whole. */
        if (madvise(area, HUGE, MADV_COLLAPSE) == -1)
            bad += errno != EINVAL && errno != ENOMEM && errno != EAGAIN;
        unsigned char *page = area + (round % 200) * PAGE;
        unsigned short number = (unsigned short)(round % 200 + 1);
        struct iovec own = { &number, 2 }, theirs = { page + PAGE - 2, 2 };
        bad += process_vm_writev(getpid(), &own, 1, &theirs, 1, 0) != 2;
        bad += *(unsigned short *)page != number || *(unsigned short *)(page + PAGE - 2) != number;
        /* A page of the lower half new, and as it was. */
        bad += mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page;
        bad += *(unsigned short *)page != 0 || page[PAGE - 1] != 0;
        *(unsigned short *)page = *(unsigned short *)(page + PAGE - 2) = number;
        if (round % 8 == 0) {
            pid_t child = fork();
            if (child == 0)
                _exit(wrong(area, 0, 256) != 0);
            bad += child == -1 || reap(child) != 0;
        }
        bad += wrong(area, 0, 256);
    }
    return (void *)bad;
}

static void *takes_away(void *which)
{
    unsigned char *at = area;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&both);
        if (which)
            madvise(at + 128 * PAGE, 128 * PAGE, MADV_DONTNEED);
        else
            munmap(at + HUGE / 2, HUGE / 2);
        pthread_barrier_wait(&both);
    }
    return NULL;
}

/* One thread takes a part of a huge page away while the other changes all of it. */
static void part_against_all(void *which)
{
    pthread_t other;
    long bad = 0;
    need(pthread_create(&other, NULL, takes_away, which) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        need(mmap(area, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
        need(madvise(area, HUGE, MADV_HUGEPAGE) == 0);
        fill(area);
        pthread_barrier_wait(&both);
        if (round % 3 == 0) {
            pid_t child = fork();
            if (child == 0)
                _exit(wrong(area, 0, 128) != 0);
            bad += child == -1 || reap(child) != 0;
        } else if (round % 3 == 1) {
            madvise(area, HUGE, MADV_COLLAPSE);
        } else {
            mprotect(area, HUGE, PROT_READ);
        }
        pthread_barrier_wait(&both);
        bad += wrong(area, 0, 128) + (which ? wrong(area, 256, 512) : 0);
        if (which)
            for (size_t page = 128; page < 256; page++)
                bad += *(unsigned short *)(area + page * PAGE) != 0;
    }
    need(pthread_join(other, NULL) == 0);
    show("bad", bad);
}

int main(void)
{
    pthread_t threads[2];
    void *bad;
    area = block();
    target = mmap(NULL, HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(target != MAP_FAILED && pthread_barrier_init(&both, NULL, 2) == 0);
    section("moved and changed");
    fill(area);
    need(pthread_create(&threads[0], NULL, mover, NULL) == 0 && pthread_create(&threads[1], NULL, changer, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        need(pthread_join(threads[i], &bad) == 0);
        show("bad", (long)bad);
    }
    show("wrong afterwards", wrong(area, 0, 512));
    section("a part unmapped");
    part_against_all(NULL);
    section("a part thrown away");
    part_against_all(&area);
    return 0;
}
