/*
 * Documentation/admin-guide/mm/hugetlbpage.rst, nr_overcommit_hugepages: mappings that find the pool empty get so many
 * pages more of the system's, counted as surplus, which go when they are given back; a pool that grows takes them over.
 */
#include "pool.h"

#define PROC "/proc/sys/vm/"
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd == -1)
        return errno;
    int error = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : errno;
    close(fd);
    return error;
}

static void settings(const char *when)
{
    char a[32] = "", b[32] = "", c[32] = "", d[32] = "";
    need(get_file(PROC "nr_hugepages", a, sizeof a) > 0 && get_file(PROC "nr_overcommit_hugepages", b, sizeof b) > 0);
    need(get_file(POOL "nr_hugepages", c, sizeof c) > 0);
    need(get_file(POOL "nr_overcommit_hugepages", d, sizeof d) > 0);
    say("%s: nr_hugepages %d, %d, nr_overcommit_hugepages %d, %d", when, atoi(a), atoi(c), atoi(b), atoi(d));
}

static char *try_map(size_t pages, int flags)
{
    char *at = mmap(NULL, pages * HUGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static int lazy(void *unused)
{
    (void)unused;
    char *at = try_map(4, MAP_PRIVATE | MAP_NORESERVE);
    need(at != NULL);
    pool("without a reservation");
    for (int page = 0; page < 4; page++) {
        at[page * HUGE] = 1;
        say("touched %d", page + 1);
        pool("then");
    }
    return 0;
}

static int as_user(void *unused)
{
    (void)unused;
    need(setuid(65534) == 0);
    show("a user, /proc", put(PROC "nr_overcommit_hugepages", "9") == EACCES);
    show("a user, /sys", put(POOL "nr_overcommit_hugepages", "9") == EACCES);
    return 0;
}

int main(void)
{
    struct stat status;
    settings("none");
    need(stat(POOL "nr_overcommit_hugepages", &status) == 0);
    say("mode %o", status.st_mode);
    show_status("as a user", in_child(as_user, NULL));
    check(try_map(1, MAP_PRIVATE) == NULL && errno == ENOMEM, "no pool: ENOMEM");
    show("three beyond", put(PROC "nr_overcommit_hugepages", "3"));
    settings("three beyond");
    pool("three beyond");
    check(try_map(4, MAP_PRIVATE) == NULL && errno == ENOMEM, "four: ENOMEM");
    pool("after four");
    char *at = try_map(2, MAP_PRIVATE);
    need(at != NULL);
    pool("two mapped");
    at[0] = 1;
    pool("one of them touched");
    check(try_map(2, MAP_SHARED) == NULL && errno == ENOMEM, "two more: ENOMEM");
    char *shared = try_map(1, MAP_SHARED);
    need(shared != NULL);
    shared[HUGE - 1] = 2;
    pool("one more, shared and touched");
    settings("in use");
    show("none beyond", put(POOL "nr_overcommit_hugepages", "0"));
    pool("those in use stay");
    show("a pool of one", put(PROC "nr_hugepages", "1"));
    pool("it takes one over");
    settings("a pool of one");
    RESULT(munmap(shared, HUGE));
    pool("the shared one given back");
    RESULT(munmap(at, 2 * HUGE));
    pool("all given back");
    show("two beyond", put(POOL "nr_overcommit_hugepages", "2\n"));
    settings("two beyond");
    show_status("lazy", in_child(lazy, NULL));
    pool("after its end");
    const char *const wrong[] = {" ", "x", "-1", "1 2", "18446744073709551616"};
    for (unsigned index = 0; index < sizeof wrong / sizeof *wrong; index++)
        say("/sys, '%s': %s", wrong[index], strerror(put(POOL "nr_overcommit_hugepages", wrong[index])));
    show("none", put(PROC "nr_hugepages", "0"));
    show("none beyond", put(PROC "nr_overcommit_hugepages", "0"));
    pool("none");
    return 0;
}
