/*
 * mmap(2), madvise(2), fork(2): memory in 2 MiB pages keeps every byte when a part of it is unmapped, protected, moved
 * or thrown away, at its edges and in its middle, and when a fork shares it and both sides write.
 */
#include "../contract.h"

#define HUGE (2UL << 20)
#define PAGES (HUGE / PAGE)

static unsigned char byte_of(size_t index) { return (unsigned char)(index * 7 + index / 256 + 1); }

/* An aligned range of 2 MiB of its own, each page marked at both ends. */
static unsigned char *fresh_block(void)
{
    char *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(room != MAP_FAILED);
    unsigned char *block = (unsigned char *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));
    if ((char *)block > room)
        need(munmap(room, (char *)block - room) == 0);
    if ((char *)block < room + HUGE)
        need(munmap(block + HUGE, room + HUGE - (char *)block) == 0);
    need(madvise(block, HUGE, MADV_HUGEPAGE) == 0);
    for (size_t i = 0; i < PAGES; i++)
        block[i * PAGE] = block[i * PAGE + PAGE - 1] = byte_of(i);
    return block;
}

/* Pages of first..last that are not as they were written. */
static int wrong(const unsigned char *block, size_t first, size_t last, size_t shift)
{
    int count = 0;
    for (size_t i = first; i < last; i++)
        count += block[(i - shift) * PAGE] != byte_of(i) || block[(i - shift) * PAGE + PAGE - 1] != byte_of(i);
    return count;
}

static int zeros(const unsigned char *block, size_t first, size_t last)
{
    int count = 0;
    for (size_t i = first; i < last; i++)
        for (size_t at = 0; at < PAGE; at += 8)
            count += block[i * PAGE + at] == 0;
    return count;
}

static size_t resident(const unsigned char *block)
{
    static unsigned char map[PAGES];
    size_t count = 0;
    need(mincore((void *)block, HUGE, map) == 0);
    for (size_t i = 0; i < PAGES; i++)
        count += map[i] & 1;
    return count;
}

static int writes(void *argument)
{
    volatile unsigned char *at = argument;
    *at = 1;
    return 0;
}

/* Each place where a part may begin or end. */
static const struct { const char *name; size_t first, last; } parts[] = {
    { "first page", 0, 1 }, { "last page", PAGES - 1, PAGES }, { "middle", 200, 300 },
    { "one inside", 255, 256 }, { "lower half", 0, 256 }, { "upper half", 256, 512 }, { "all but ends", 1, 511 },
};

static void each_edge(void)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        size_t first = parts[i].first, last = parts[i].last;
        section(parts[i].name);
        unsigned char *block = fresh_block();
        RESULT(madvise(block + first * PAGE, (last - first) * PAGE, MADV_DONTNEED));
        show("resident", resident(block));
        show("wrong", wrong(block, 0, first, 0) + wrong(block, last, PAGES, 0));
        show("zeros", zeros(block, first, last));
        RESULT(munmap(block, HUGE));

        block = fresh_block();
        RESULT(mprotect(block + first * PAGE, (last - first) * PAGE, PROT_READ));
        show("wrong", wrong(block, 0, PAGES, 0));
        show_status("a write inside", in_child(writes, block + first * PAGE + 5));
        if (first > 0)
            show_status("a write before", in_child(writes, block + first * PAGE - 1));
        if (last < PAGES)
            show_status("a write after", in_child(writes, block + last * PAGE));
        RESULT(mprotect(block, HUGE, PROT_READ | PROT_WRITE));
        block[first * PAGE + 9] = 3;
        show("wrong", wrong(block, 0, PAGES, 0));

        RESULT(munmap(block + first * PAGE, (last - first) * PAGE));
        show("wrong", wrong(block, 0, first, 0) + wrong(block, last, PAGES, 0));
        show_status("a write into the hole", in_child(writes, block + first * PAGE));
        munmap(block, HUGE);
    }
}

static void moved(void)
{
    section("half moved");
    unsigned char *block = fresh_block();
    unsigned char *target = mmap(NULL, HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(target != MAP_FAILED);
    unsigned char *half = mremap(block + HUGE / 2, HUGE / 2, HUGE / 2, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    check(half == target, "the upper half moved");
    show("wrong below", wrong(block, 0, PAGES / 2, 0));
    show("wrong above", wrong(target, PAGES / 2, PAGES, PAGES / 2));
    show_status("a write where it was", in_child(writes, block + HUGE / 2));
    half = mremap(block, HUGE / 2, PAGE, 0);
    check(half == block, "the lower half shrank");
    show("wrong", wrong(block, 0, 1, 0));
    munmap(block, HUGE);
    munmap(target, HUGE);
    section("replaced inside");
    block = fresh_block();
    need(mmap(block + 100 * PAGE, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    show("wrong", wrong(block, 0, 100, 0) + wrong(block, 103, PAGES, 0));
    show("zeros", zeros(block, 100, 103));
    munmap(block, HUGE);
}

static int scribbles(void *argument)
{
    unsigned char *block = argument;
    for (size_t i = 0; i < PAGES; i += 2)
        block[i * PAGE] = 0xee;
    int count = wrong(block + PAGE, 1, 2, 1);
    for (size_t i = 1; i < PAGES; i += 2)
        count += block[i * PAGE] != byte_of(i);
    return count;
}

static void forked(void)
{
    section("forked");
    unsigned char *block = fresh_block();
    pid_t children[3];
    for (size_t i = 0; i < COUNT_OF(children); i++)
        children[i] = spawn(scribbles, block);
    for (size_t i = 1; i < PAGES; i += 2)
        block[i * PAGE] = byte_of(i);
    show("wrong in the parent", wrong(block, 0, PAGES, 0));
    for (size_t i = 0; i < COUNT_OF(children); i++)
        show_status("child", reap(children[i]));
    show("wrong in the parent", wrong(block, 0, PAGES, 0));
    need(madvise(block + 8 * PAGE, 8 * PAGE, MADV_DONTFORK) == 0);
    show_status("what is not inherited", in_child(writes, block + 8 * PAGE));
    show_status("what is", in_child(writes, block + 16 * PAGE));
    need(madvise(block + 32 * PAGE, 8 * PAGE, MADV_WIPEONFORK) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(block[32 * PAGE] == 0 && block[31 * PAGE] == byte_of(31) && block[40 * PAGE] == byte_of(40) ? 0 : 1);
    show_status("wiped", reap(child));
    show("wrong in the parent", wrong(block, 0, PAGES, 0));
    munmap(block, HUGE);
}

static void read_by_others(void)
{
    section("read and written from outside");
    unsigned char *block = fresh_block(), copy[64];
    struct iovec own = { copy, sizeof copy }, theirs = { block + 77 * PAGE - 32, sizeof copy };
    show("read", process_vm_readv(getpid(), &own, 1, &theirs, 1, 0));
    check(copy[31] == byte_of(76) && copy[32] == byte_of(77), "both pages were read");
    memset(copy, 0xaa, sizeof copy);
    show("written", process_vm_writev(getpid(), &own, 1, &theirs, 1, 0));
    check(block[77 * PAGE - 1] == 0xaa && block[77 * PAGE] == 0xaa, "both pages were written");
    show("wrong", wrong(block, 0, PAGES, 0));
    show("resident", resident(block));
    need(mlock(block + 5 * PAGE, 7 * PAGE) == 0);
    show("wrong", wrong(block, 0, PAGES, 0));
    munmap(block, HUGE);
}

int main(void)
{
    each_edge();
    moved();
    forked();
    read_by_others();
    return 0;
}
