/* truncate(2): shrinking drops bytes, growing reads as zeros, and the bytes cut once do not come back. */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "0123456789", 0600);
    int fd = open("file", O_RDWR), in = open("file", O_RDONLY), ends[2];
    need(pipe(ends) == 0 && lseek(fd, 8, SEEK_SET) == 8);
    RESULT(ftruncate(fd, 4));
    RESULT(lseek(fd, 0, SEEK_CUR));
    RESULT(lseek(fd, 0, SEEK_END));
    RESULT(truncate("file", 10));
    char text[11] = { 0 };
    RESULT(pread(in, text, 10, 0));
    check(memcmp(text, "0123\0\0\0\0\0\0", 10) == 0, "cut bytes are zeros after growing");
    RESULT(ftruncate(fd, -1));
    RESULT(ftruncate(in, 3));
    RESULT(ftruncate(ends[1], 3));
    RESULT(ftruncate(-1, 3));
    RESULT(truncate("absent", 3));
    RESULT(truncate(".", 3));
    RESULT(truncate("file/x", 3));
    RESULT(truncate(BAD_POINTER, 3));
    return 0;
}
