/*
 * inode(7): reading moves nothing but atime, writing mtime and ctime, chmod and link only ctime, names the
 * directory's mtime.
 */
#include "../contract.h"

static struct stat before_file, before_directory;

static void start(void)
{
    struct timespec past[2] = { { 1000, 0 }, { 1000, 0 } };
    need(utimensat(AT_FDCWD, "file", past, 0) == 0 && utimensat(AT_FDCWD, ".", past, 0) == 0);
    sleep_ms(12);
    need(stat("file", &before_file) == 0 && stat(".", &before_directory) == 0);
}

static int later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static void finish(const char *what)
{
    struct stat file, directory;
    need(stat("file", &file) == 0 && stat(".", &directory) == 0);
    say("%s: file mtime %d ctime %d, directory mtime %d ctime %d", what, later(file.st_mtim, before_file.st_mtim),
        later(file.st_ctim, before_file.st_ctim), later(directory.st_mtim, before_directory.st_mtim),
        later(directory.st_ctim, before_directory.st_ctim));
}

int main(void)
{
    scratch();
    char byte;
    put_file("file", "text", 0600);
    int fd = open("file", O_RDWR);
    start();
    need(read(fd, &byte, 1) == 1);
    finish("read");
    start();
    need(write(fd, "x", 1) == 1);
    finish("write");
    start();
    need(ftruncate(fd, 2) == 0);
    finish("truncate");
    start();
    need(chmod("file", 0640) == 0);
    finish("chmod");
    start();
    need(link("file", "second") == 0);
    finish("link");
    start();
    need(rename("second", "third") == 0);
    finish("rename of the other name");
    start();
    need(unlink("third") == 0);
    finish("unlink of the other name");
    start();
    put_file("new", "", 0600);
    finish("creation beside");
    return 0;
}
