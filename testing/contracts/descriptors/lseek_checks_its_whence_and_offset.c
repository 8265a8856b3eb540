/*
 * lseek(2): seeking past the end is allowed, before the start is EINVAL, a pipe cannot seek, a hole reads as
 * zeros.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "0123456789", 0600);
    int fd = open("file", O_RDWR), ends[2];
    need(pipe(ends) == 0);
    RESULT(lseek(fd, 4, SEEK_SET));
    RESULT(lseek(fd, 3, SEEK_CUR));
    RESULT(lseek(fd, -2, SEEK_END));
    RESULT(lseek(fd, -20, SEEK_END));
    RESULT(lseek(fd, -1, SEEK_SET));
    RESULT(lseek(fd, 0, 99));
    RESULT(lseek(fd, 0, SEEK_CUR));
    RESULT(lseek(ends[0], 0, SEEK_CUR));
    RESULT(lseek(-1, 0, SEEK_CUR));
    RESULT(lseek(fd, 5000, SEEK_SET));
    char byte;
    RESULT(read(fd, &byte, 1));
    RESULT(write(fd, "x", 1));
    RESULT(lseek(fd, 0, SEEK_END));
    char hole[8] = "wrong!!";
    RESULT(pread(fd, hole, 8, 100));
    check(memcmp(hole, "\0\0\0\0\0\0\0", 8) == 0, "the hole reads as zeros");
    return 0;
}
