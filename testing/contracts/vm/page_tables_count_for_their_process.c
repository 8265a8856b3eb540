/*
 * VmPTE in /proc/self/status counts the frames of a process's page tables (proc(5)): those of a page far from all
 * others are two, one of the third level and one of the last, and a third in an area of 512 GiB without others; a
 * second page beside it needs none, and unmapping gives all of them back. Small pages that are unmapped or moved one by
 * one leave few.
 */
#include "../contract.h"

#define GIB (1UL << 30)
#define PLACES 64

static long tables(void)
{
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY);
    need(fd != -1);
    ssize_t length = read(fd, text, sizeof text - 1);
    need(length > 0);
    close(fd);
    text[length] = 0;
    char *at = strstr(text, "VmPTE:");
    need(at != NULL);
    return atol(at + 6);
}

static void map(char *at, size_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    need(mmap(at, size, PROT_READ | PROT_WRITE, flags, -1, 0) == at);
    need(madvise(at, size, MADV_NOHUGEPAGE) == 0);
}

static char *place(int number)
{
    return (char *)(1024 * GIB + number * 3 * GIB);
}

int main(void)
{
    char *far = (char *)(16 * GIB);
    tables();
    long before = tables();
    check(before >= 8, "a process has page tables");
    map(far, GIB);
    check(tables() == before, "a mapping alone needs none");
    far[0] = 1;
    long one = tables();
    check(one - before == 8, "the first page needs two");
    far[PAGE] = 1;
    check(tables() == one, "the next one needs none");
    munmap(far, GIB);
    check(tables() == before, "all are given back");

    far = (char *)(5 * 1024 * GIB);
    map(far, 3 * GIB);
    for (int page = 0; page < 3; page++) far[page * GIB] = 1;
    check(tables() - before == 28, "three pages in three GiB need seven");
    munmap(far + GIB, GIB);
    check(tables() - before == 20, "what holds no page any more goes alone");
    munmap(far, 3 * GIB);
    check(tables() == before, "the rest with the last page");

    for (int number = 0; number < PLACES; number++) {
        map(place(number), PAGE);
        place(number)[0] = 1;
    }
    check(tables() - before >= 4 * 2 * PLACES, "each far page has tables of its own");
    for (int number = 0; number < PLACES; number++) munmap(place(number), PAGE);
    check(tables() - before <= 128, "pages unmapped one by one leave few");

    for (int number = 0; number < PLACES; number++) {
        map(place(number), PAGE);
        place(number)[0] = 1;
        char *to = place(number) + GIB;
        need(mremap(place(number), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        munmap(to, PAGE);
    }
    check(tables() - before <= 128, "neither do pages that are moved");
    return 0;
}
