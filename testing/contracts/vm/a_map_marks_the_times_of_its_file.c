/*
 * mmap(2), "Timestamps changes for file-backed mappings": mapping marks st_atime, the first store into a shared map
 * marks st_mtime and st_ctime; a store into a private one marks nothing.
 */
#include "../contract.h"

static struct stat before;

static int later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static void start(void)
{
    struct timespec past[2] = { { 1000, 0 }, { 1000, 0 } };
    need(utimensat(AT_FDCWD, "file", past, 0) == 0);
    sleep_ms(12);
    need(stat("file", &before) == 0);
}

static void finish(const char *what)
{
    struct stat now;
    need(stat("file", &now) == 0);
    say("%s: atime %d mtime %d ctime %d", what, later(now.st_atim, before.st_atim), later(now.st_mtim, before.st_mtim),
        later(now.st_ctim, before.st_ctim));
}

int main(void)
{
    scratch();
    put_file("file", "abcdefgh", 0600);
    need(truncate("file", 2 * PAGE) == 0);
    int fd = open("file", O_RDWR);
    start();
    volatile char *shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(shared != MAP_FAILED);
    finish("mapping it shared");
    start();
    shared[0] = 'S';
    finish("the first store into a page");
    start();
    need(msync((void *)shared, 2 * PAGE, MS_SYNC) == 0);
    finish("msync");
    volatile char *private = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    need(private != MAP_FAILED);
    start();
    private[0] = 'P';
    need(private[PAGE] == 0);
    finish("a store into a private map");
    int quiet = open("file", O_RDONLY | O_NOATIME);
    start();
    need(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, quiet, 0) != MAP_FAILED);
    finish("mapping it opened with O_NOATIME");
    return 0;
}
