/*
 * Documentation/admin-guide/mm/hugetlbpage.rst: /sys/kernel/mm/hugepages/hugepages-2048kB resizes the pool of 2 MiB
 * pages and shows what of it is free, reserved and surplus; only its size takes what is written, from root only. It is
 * the pool of /proc/sys/vm/nr_hugepages and of /proc/meminfo.
 */
#include "../contract.h"

#define HUGE (2UL << 20)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static const char *const files[] = {"nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages"};

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, POOL "%s", name);
    return path;
}

static void pool(const char *when)
{
    for (unsigned index = 0; index < 4; index++) {
        char text[64] = "";
        int length = (int)get_file(path_of(files[index]), text, sizeof text);
        need(length > 0);
        say("%s: %s %d, %d bytes", when, files[index], atoi(text), length);
    }
}

static int put_at(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd == -1)
        return errno;
    int error = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : errno;
    close(fd);
    return error;
}

static int put(const char *name, const char *text) { return put_at(path_of(name), text); }

static int as_user(void *unused)
{
    (void)unused;
    char text[64];
    need(setuid(65534) == 0);
    check(put("nr_hugepages", "9") == EACCES, "a user resizes: EACCES");
    check(get_file(path_of("nr_hugepages"), text, sizeof text) > 0, "a user reads");
    return 0;
}

int main(void)
{
    struct stat status;
    pool("none");
    for (unsigned index = 0; index < 4; index++) {
        need(stat(path_of(files[index]), &status) == 0);
        say("%s: mode %o, size %ld", files[index], status.st_mode, (long)status.st_size);
    }
    show("asked for six", put("nr_hugepages", "6\n"));
    pool("six");
    char *at = mmap(NULL, 3 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    need(at != MAP_FAILED);
    pool("three mapped");
    at[0] = 1;
    pool("one of them touched");
    show("asked for none", put("nr_hugepages", "0"));
    pool("three in use");
    RESULT(munmap(at, 3 * HUGE));
    pool("given back");
    for (unsigned index = 1; index < 4; index++)
        check(put(files[index], "1") == EACCES, "root writes a figure: EACCES");
    const char *const wrong[] = {"", " ", "x", "-1", "1 2", "0x2", "18446744073709551616"};
    for (unsigned index = 1; index < sizeof wrong / sizeof *wrong; index++)
        say("asked for '%s': %s", wrong[index], strerror(put("nr_hugepages", wrong[index])));
    show_status("as a user", in_child(as_user, NULL));
    need(put_at("/proc/sys/vm/nr_hugepages", "2") == 0);
    pool("two by /proc");
    need(put_at("/proc/sys/vm/nr_hugepages", "0") == 0);
    pool("none by /proc");
    return 0;
}
