/* fallocate(2): grows a file unless told to keep its size, and punching a hole makes the bytes zero in place. */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "0123456789", 0600);
    int fd = open("file", O_RDWR), in = open("file", O_RDONLY), ends[2];
    struct stat meta;
    need(pipe(ends) == 0);
    RESULT(fallocate(fd, 0, 0, 100));
    need(fstat(fd, &meta) == 0);
    show("size", meta.st_size);
    RESULT(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8192));
    need(fstat(fd, &meta) == 0);
    show("size kept", meta.st_size);
    RESULT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
    char text[11] = { 0 };
    need(pread(fd, text, 10, 0) == 10);
    check(memcmp(text, "01\0\0\0" "56789", 10) == 0, "the punched bytes are zeros");
    RESULT(fallocate(fd, 0, -1, 10));
    RESULT(fallocate(fd, 0, 0, 0));
    RESULT(fallocate(in, 0, 0, 10));
    RESULT(fallocate(ends[1], 0, 0, 10));
    RESULT(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10));
    return 0;
}
