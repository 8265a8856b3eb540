/*
 * VmPTE in /proc/self/status counts the frames of a process's page tables (proc(5)): those of a page far from all
 * others are two, one of the third level and one of the last; a second page beside it needs none, and unmapping gives
 * tables back. (Under our kernel those of the last level alone; the others serve the next mapping there.)
 */
#include "../contract.h"

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

int main(void)
{
    char *far = (char *)(16UL << 30);
    tables();
    long before = tables();
    check(before >= 8, "a process has page tables");
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    need(mmap(far, 1 << 30, PROT_READ | PROT_WRITE, flags, -1, 0) == far);
    need(madvise(far, 1 << 30, MADV_NOHUGEPAGE) == 0);
    check(tables() == before, "a mapping alone needs none");
    far[0] = 1;
    long one = tables();
    check(one - before == 8, "the first page needs two");
    far[4096] = 1;
    check(tables() == one, "the next one needs none");
    munmap(far, 1 << 30);
    check(tables() < one, "tables are given back");
    return 0;
}
