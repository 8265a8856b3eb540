/*
 * brk(2), mremap(2), Documentation/admin-guide/mm/hugetlbpage.rst: a page of the pool is mapped and unmapped whole. Who
 * lowers the program break into one, or moves a mapping that ends inside one, is refused, and the pool has all its
 * pages afterwards.
 */
#include "security.h"

#define HUGE (2UL << 20)
#define NR "/proc/sys/vm/nr_hugepages"

static long free_pages(void)
{
    char line[128];
    long value = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    need(file != NULL);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "HugePages_Free:", 15) == 0)
            value = atol(line + 15);
    fclose(file);
    return value;
}

static void resize(const char *count)
{
    int fd = open(NR, O_WRONLY);
    need(fd != -1 && write(fd, count, 1) == 1 && close(fd) == 0);
}

/* The program break, as the system call answers it. */
static char *brk_to(void *wanted) { return (char *)syscall(SYS_brk, wanted); }

static int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED;

/* A page of the pool in place of a part of the heap, which ends `beyond` bytes behind the page's beginning. */
static char *in_heap(size_t beyond)
{
    char *base = brk_to(NULL);
    char *at = (char *)(((uintptr_t)base + 2 * HUGE) & -HUGE);
    need(brk_to(at + beyond) == at + beyond);
    need(mmap(at, HUGE, PROT_READ | PROT_WRITE, flags, -1, 0) == at);
    for (size_t byte = 0; byte < HUGE; byte += PAGE)
        at[byte] = 1;
    return at;
}

static int lowered_into(void *unused)
{
    (void)unused;
    char *at = in_heap(2 * HUGE);
    check(brk_to(at + PAGE) == at + 2 * HUGE, "the break stays where it would cut a page");
    check(at[HUGE - PAGE] == 1, "the page is whole");
    RESULT(munmap(at, HUGE));
    return 0;
}

static int lowered_from(void *unused)
{
    (void)unused;
    char *at = in_heap(PAGE);
    check(brk_to(at - PAGE) == at + PAGE, "the break stays where it lies in a page");
    check(at[0] == 1, "the page is whole");
    RESULT(munmap(at, HUGE));
    return 0;
}

/* A page of the pool behind a small one. */
static char *behind_a_page(void)
{
    char *room = mmap(NULL, 4 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = (char *)(((uintptr_t)room + HUGE) & -HUGE);
    need(room != MAP_FAILED && mmap(at, HUGE, PROT_READ | PROT_WRITE, flags, -1, 0) == at);
    need(mprotect(at - PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    memset(at, 1, HUGE);
    at[-1] = 2;
    return at;
}

static int moved_away(void *unused)
{
    (void)unused;
    char *at = behind_a_page(), *aside = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(aside != MAP_FAILED);
    void *moved = mremap(at - PAGE, 2 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, aside);
    check(moved == MAP_FAILED && errno == EINVAL, "a move whose old place ends in a page");
    check(at[0] == 1 && at[-1] == 2, "all is where it was");
    RESULT(munmap(at, HUGE));
    return 0;
}

static int shrunk_into(void *unused)
{
    (void)unused;
    char *at = behind_a_page();
    void *shrunk = mremap(at - PAGE, PAGE + HUGE, 2 * PAGE, 0);
    check(shrunk == MAP_FAILED && errno == EINVAL, "a range that would end in a page");
    check(at[HUGE - PAGE] == 1 && at[-1] == 2, "all is where it was");
    RESULT(munmap(at, HUGE));
    return 0;
}

int main(void)
{
    static const struct { const char *name; int (*body)(void *); } cuts[] = {
        { "lowered into a page", lowered_into },
        { "lowered from a page", lowered_from },
        { "moved away before a page", moved_away },
        { "shrunk into a page", shrunk_into },
    };
    scratch();
    resize("2");
    show("free", free_pages());
    for (size_t at = 0; at < COUNT_OF(cuts); at++) {
        section(cuts[at].name);
        show_status(cuts[at].name, as_nobody(cuts[at].body, NULL));
        show("free", free_pages());
    }
    resize("0");
    show("free", free_pages());
    return 0;
}
