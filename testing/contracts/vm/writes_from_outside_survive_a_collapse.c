/*
 * process_vm_writev(2), madvise(2) MADV_COLLAPSE: what is written to a page from outside while its
 * neighbours are made one huge page, and split again, is there afterwards: no write goes to the copy that is given up.
 * contract: timeout=40
 */
#include "../contract.h"

#define HUGE (2UL << 20)
#define ROUNDS 3000
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static unsigned char *area;
static volatile int stop;

static void *collapser(void *unused)
{
    (void)unused;
    while (!stop) {
        madvise(area, HUGE, MADV_COLLAPSE);
        /* A change of one page splits it. */
        unsigned char *page = area + 100 * PAGE;
        if (mprotect(page, PAGE, PROT_READ) != 0 || mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
            return (void *)1;
    }
    return NULL;
}

/* Writes to a word of this page from outside; how often it was not there afterwards. */
static void *writer(void *page)
{
    volatile long *word = (long *)(area + (size_t)page * PAGE + 64);
    long bad = 0;
    for (long value = 1; value <= ROUNDS; value++) {
        struct iovec own = { &value, sizeof value }, theirs = { (void *)word, sizeof value };
        bad += process_vm_writev(getpid(), &own, 1, &theirs, 1, 0) != sizeof value || *word != value;
    }
    return (void *)bad;
}

int main(void)
{
    char *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t other, writers[2];
    void *bad;
    need(room != MAP_FAILED);
    area = (unsigned char *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));
    memset(area, 1, HUGE);
    need(pthread_create(&other, NULL, collapser, NULL) == 0);
    for (size_t i = 0; i < COUNT_OF(writers); i++)
        need(pthread_create(&writers[i], NULL, writer, (void *)(7 + 300 * i)) == 0);
    for (size_t i = 0; i < COUNT_OF(writers); i++) {
        need(pthread_join(writers[i], &bad) == 0);
        show("writes lost", (long)bad);
    }
    stop = 1;
    need(pthread_join(other, &bad) == 0);
    show("collapser", (long)bad);
    return 0;
}
