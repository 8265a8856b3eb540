/*
 * mmap(2) MAP_HUGETLB, Documentation/admin-guide/mm/hugetlbpage.rst: vm.nr_hugepages makes a pool of 2 MiB pages. A
 * mapping of them reserves what it may touch (ENOMEM without), one with MAP_NORESERVE meets SIGBUS at its end; they are
 * never cut (EINVAL); and what is unmapped or thrown away, or was an ended process's, is free again.
 */
#include "pool.h"

#define NR "/proc/sys/vm/nr_hugepages"
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static void resize(const char *count)
{
    char text[32];
    int fd = open(NR, O_WRONLY);
    need(fd != -1 && write(fd, count, strlen(count)) == (ssize_t)strlen(count) && close(fd) == 0);
    need(get_file(NR, text, sizeof text) > 0);
    say("nr_hugepages: asked for %s, has %d", count, atoi(text));
}

static char *try_map(size_t pages, int flags)
{
    char *at = mmap(NULL, pages * HUGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static char *map(size_t pages, int flags)
{
    char *at = try_map(pages, flags);
    need(at && (uintptr_t)at % HUGE == 0);
    return at;
}

static void touch(char *at, size_t pages)
{
    for (size_t page = 0; page < pages; page++)
        for (size_t byte = 0; byte < HUGE; byte += 16 * PAGE)
            at[page * HUGE + byte] = (char)(page + 1);
}

static int touches(void *at)
{
    ((volatile char *)at)[0] = 1;
    return 0;
}

static int touches_three(void *unused)
{
    (void)unused;
    touch(map(3, MAP_PRIVATE), 3);
    return 0;
}

static int may_not_resize(void *unused)
{
    (void)unused;
    need(setuid(65534) == 0);
    return open(NR, O_WRONLY) == -1 && errno == EACCES ? 0 : 1;
}

static int without_reserve(void *unused)
{
    (void)unused;
    char *at = map(7, MAP_PRIVATE | MAP_NORESERVE);
    touch(at, 6);
    pool("six touched");
    touch(at + 6 * HUGE, 1);
    return 0;
}

static void reserved(void)
{
    section("reserved");
    char *at = map(2, MAP_PRIVATE);
    pool("mapped");
    check(at[HUGE - 1] == 0, "zeros");
    pool("read");
    touch(at, 2);
    pool("touched");
    RESULT(munmap(at, PAGE));
    RESULT(munmap(at + PAGE, HUGE - PAGE));
    RESULT(munmap(at, HUGE));
    pool("half of it unmapped");
    RESULT(munmap(at + HUGE, HUGE));
    pool("unmapped");
    at = map(3, MAP_PRIVATE);
    touch(at + HUGE, 1);
    RESULT(munmap(at, HUGE));
    pool("one that was not touched unmapped");
    RESULT(munmap(at + HUGE, 2 * HUGE));
    pool("all unmapped");
    check(try_map(7, MAP_PRIVATE) == NULL && errno == ENOMEM, "more than there are: ENOMEM");
    check(try_map(7, MAP_SHARED) == NULL && errno == ENOMEM, "shared, more than there are: ENOMEM");
    at = map(4, MAP_SHARED);
    check(try_map(3, MAP_PRIVATE) == NULL && errno == ENOMEM, "more than is left: ENOMEM");
    RESULT(munmap(at, 4 * HUGE));
    show_status("without a reservation", in_child(without_reserve, NULL));
    pool("after its end");
    show_status("ends with three", in_child(touches_three, NULL));
    pool("after its end");
}

static void refused(void)
{
    section("refused");
    char *at = map(2, MAP_PRIVATE);
    check(mmap(NULL, HUGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 22 << 26, -1, 0) == MAP_FAILED &&
          errno == EINVAL, "a size that there is not");
    char *one = mmap(NULL, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << 26, -1, 0);
    check(one != MAP_FAILED && (uintptr_t)one % HUGE == 0, "its size by name, for one byte");
    RESULT(munmap(one, HUGE - 5));
    /* Rounded up, both are beyond the last address; what the second one answers is not said. */
    int lazy = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE;
    char *end = mmap((void *)-PAGE, HUGE, PROT_READ, lazy, -1, 0);
    check(end != MAP_FAILED && (uintptr_t)end % HUGE == 0, "a hint at the end of addresses");
    mremap(end, HUGE, -PAGE, MREMAP_MAYMOVE, NULL);
    munmap(end, HUGE);
    int fd = open("/proc/self/exe", O_RDONLY);
    check(mmap(NULL, HUGE, PROT_READ, MAP_PRIVATE | MAP_HUGETLB, fd, 0) == MAP_FAILED && errno == EINVAL, "a file");
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    check(mmap(at + PAGE, HUGE, PROT_READ, flags | MAP_HUGETLB, -1, 0) == MAP_FAILED && errno == EINVAL,
          "a fixed place between");
    check(mmap(at + PAGE, PAGE, PROT_READ, flags, -1, 0) == MAP_FAILED && errno == ENOMEM, "over a part of one");
    RESULT(mprotect(at, PAGE, PROT_READ));
    RESULT(mprotect(at + HUGE, HUGE, PROT_READ));
    show_status("writes to a page to read", in_child(touches, at + HUGE));
    RESULT(mprotect(at + HUGE, HUGE, PROT_READ | PROT_WRITE));
    RESULT(madvise(at + PAGE, HUGE, MADV_DONTNEED));
    RESULT(madvise(at, HUGE, MADV_FREE));
    RESULT(madvise(at, HUGE, MADV_HUGEPAGE));
    RESULT(madvise(at, HUGE, MADV_COLLAPSE));
    RESULT(madvise(at, HUGE, MADV_WIPEONFORK));
    check(mremap(at, HUGE, 3 * HUGE, MREMAP_MAYMOVE, NULL) == MAP_FAILED && errno == EINVAL, "to grow");
    check(mremap(at + PAGE, HUGE, HUGE, MREMAP_MAYMOVE, NULL) == MAP_FAILED && errno == EINVAL, "to move a part");
    RESULT(munmap(at, 2 * HUGE));
    pool("afterwards");
}

static void moved(void)
{
    section("thrown away, moved, shrunk");
    char *at = map(2, MAP_PRIVATE), *place = map(1, MAP_PRIVATE);
    touch(at, 2);
    show("free", meminfo("HugePages_Free"));
    RESULT(madvise(at, HUGE + PAGE, MADV_DONTNEED));
    show("free", meminfo("HugePages_Free"));
    check(at[0] == 0 && at[HUGE] == 2, "zeros, and what was thrown away in part only");
    touch(at, 1);
    check(mremap(at + HUGE, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place && place[0] == 2, "moved");
    show("free", meminfo("HugePages_Free"));
    RESULT(munmap(place, HUGE));
    RESULT(munmap(at, HUGE));
    at = map(2, MAP_PRIVATE);
    touch(at, 2);
    check(mremap(at, 2 * HUGE, HUGE, 0) == at && at[0] == 1, "shrunk");
    show("free", meminfo("HugePages_Free"));
    RESULT(munmap(at, HUGE));
    pool("afterwards");
}

static int writes_own(void *at)
{
    char *memory = at;
    int seen = memory[0] == 1 && memory[HUGE] == 2 && memory[HUGE - 16 * PAGE] == 1;
    memory[0] = 9;
    memory[HUGE + PAGE] = 9;
    return seen && memory[16 * PAGE] == 1 ? 0 : 1;
}

static void forked(void)
{
    section("forked");
    char *at = map(2, MAP_PRIVATE);
    touch(at, 2);
    show_status("the child of a private one", in_child(writes_own, at));
    check(at[0] == 1 && at[HUGE + PAGE] == 0, "the parent's is as it was");
    at[0] = 7;
    show_status("another", in_child(writes_own, at) == 0 ? 1 : 0);
    RESULT(munmap(at, 2 * HUGE));
    pool("afterwards");
    at = map(2, MAP_SHARED);
    touch(at, 2);
    show_status("the child of a shared one", in_child(writes_own, at));
    check(at[0] == 9 && at[HUGE + PAGE] == 9, "the parent's is as the child made it");
    pool("shared");
    RESULT(munmap(at, 2 * HUGE));
    pool("afterwards");
}

static void shrunk(void)
{
    section("a pool that shrinks");
    char *at = map(2, MAP_PRIVATE);
    touch(at, 1);
    resize("0");
    pool("in use");
    touch(at, 2);
    RESULT(munmap(at, 2 * HUGE));
    pool("given back");
    check(try_map(1, MAP_PRIVATE) == NULL && errno == ENOMEM, "no pool: ENOMEM");
}

int main(void)
{
    show("Hugepagesize", meminfo("Hugepagesize"));
    pool("none");
    resize("6");
    pool("six");
    show("Hugetlb", meminfo("Hugetlb"));
    show_status("a user resizes", in_child(may_not_resize, NULL));
    reserved();
    refused();
    moved();
    forked();
    shrunk();
    return 0;
}
