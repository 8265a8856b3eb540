/*
 * fcntl(2), "File Sealing": F_SEAL_WRITE forbids every write and every shared writable mapping, F_SEAL_FUTURE_WRITE
 * those to come; neither is got round by mprotect(2), a second opening or a hole.
 */
#include "security.h"

#define RW (PROT_READ | PROT_WRITE)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static int make(void)
{
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    need(fd != -1 && write(fd, "original", 8) == 8 && ftruncate(fd, 2 * PAGE) == 0);
    return fd;
}

static int reopen(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags);
}

static void attempts(int fd)
{
    char text[9] = "";
    int again = reopen(fd, O_RDONLY), other = reopen(fd, O_RDWR);
    OUTCOME(write(fd, "forged", 6));
    OUTCOME(pwrite(other, "forged", 6, 0));
    OUTCOME(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
    OUTCOME(mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0));
    OUTCOME(mmap(NULL, PAGE, RW, MAP_SHARED, other, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, PAGE));
    char *readable = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    show("readable shared mapping of a writable opening", readable != MAP_FAILED);
    if (readable != MAP_FAILED)
        OUTCOME(mprotect(readable, PAGE, RW));
    readable = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, again, 0);
    show("readable shared mapping of a readable opening", readable != MAP_FAILED);
    OUTCOME(mprotect(readable, PAGE, RW));
    char *own = mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0);
    show("private mapping", own != MAP_FAILED);
    strcpy(own, "private");
    need(pread(fd, text, 8, 0) == 8);
    show_text("contents", text);
    show("seals", fcntl(fd, F_GET_SEALS));
}

int main(void)
{
    section("F_SEAL_WRITE");
    int fd = make();
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    attempts(fd);
    section("F_SEAL_FUTURE_WRITE");
    fd = make();
    char *before = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    need(before != MAP_FAILED);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    attempts(fd);
    memcpy(before, "mapped b", 8);
    char text[9] = "";
    need(pread(fd, text, 8, 0) == 8);
    show_text("through the older mapping", text);
    OUTCOME(mprotect(before, PAGE, PROT_READ));
    OUTCOME(mprotect(before, PAGE, RW));
    section("size");
    fd = make();
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
    OUTCOME(ftruncate(fd, PAGE));
    OUTCOME(ftruncate(fd, 4 * PAGE));
    OUTCOME(pwrite(fd, "x", 1, 2 * PAGE));
    OUTCOME(fallocate(fd, 0, 2 * PAGE, PAGE));
    OUTCOME(reopen(fd, O_RDWR | O_TRUNC));
    OUTCOME(pwrite(fd, "x", 1, PAGE));
    section("no seals from a readable opening, none on ordinary files");
    fd = make();
    OUTCOME(fcntl(reopen(fd, O_RDONLY), F_ADD_SEALS, F_SEAL_WRITE));
    scratch();
    put_file("file", "text", 0644);
    OUTCOME(fcntl(open("file", O_RDWR), F_ADD_SEALS, F_SEAL_WRITE));
    return 0;
}
