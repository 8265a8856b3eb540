/*
 * mmap(2): MAP_SHARED_VALIDATE refuses flags it does not know (EOPNOTSUPP), MAP_SHARED and MAP_PRIVATE ignore them;
 * MAP_SYNC is for direct-access storage only; the type of a mapping is one of three values, and a file's rights
 * bound the map's.
 */
#include "contract.h"
#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif

static int map(int flags, int fd, int rights)
{
    void *at = mmap(NULL, PAGE, rights, flags, fd, 0);
    if (at == MAP_FAILED)
        return -1;
    munmap(at, PAGE);
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "text", 0600);
    int fd = open("file", O_RDWR), reads = open("file", O_RDONLY), writes = open("file", O_WRONLY);
    int unknown = 0x2000000, rw = PROT_READ | PROT_WRITE;
    section("files");
    RESULT(map(MAP_SHARED_VALIDATE, fd, rw));
    RESULT(map(MAP_SHARED_VALIDATE | unknown, fd, rw));
    RESULT(map(MAP_SHARED_VALIDATE | MAP_SYNC, fd, rw));
    RESULT(map(MAP_SHARED_VALIDATE | MAP_POPULATE | MAP_NORESERVE, fd, rw));
    RESULT(map(MAP_SHARED | unknown, fd, rw));
    RESULT(map(MAP_SHARED | MAP_SYNC, fd, rw));
    RESULT(map(MAP_PRIVATE | unknown, fd, rw));
    section("without a file");
    RESULT(map(MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, rw));
    RESULT(map(MAP_SHARED | MAP_ANONYMOUS, -1, rw));
    RESULT(map(MAP_ANONYMOUS, -1, rw));
    RESULT(map(0, fd, rw));
    RESULT(map(0xf, fd, rw));
    section("rights");
    RESULT(map(MAP_SHARED_VALIDATE, reads, rw));
    RESULT(map(MAP_SHARED_VALIDATE, reads, PROT_READ));
    RESULT(map(MAP_SHARED, reads, rw));
    RESULT(map(MAP_PRIVATE, reads, rw));
    RESULT(map(MAP_SHARED, writes, PROT_WRITE));
    RESULT(map(MAP_PRIVATE, writes, PROT_READ));
    RESULT(map(MAP_SHARED, -1, rw));
    section("lengths");
    OUTCOME(mmap(NULL, 0, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, -PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, -1UL, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap((void *)1, PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    OUTCOME(mmap(NULL, PAGE, rw, MAP_PRIVATE, fd, 1));
    OUTCOME(mmap(NULL, 2 * PAGE, rw, MAP_PRIVATE, fd, -4096L));
    return 0;
}
