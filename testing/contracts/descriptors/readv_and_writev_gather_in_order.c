/*
 * readv(2): vectors fill and drain in order, zero lengths are allowed, and more than 1024 or a negative total is
 * EINVAL.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    struct iovec out[4] = { { "one ", 4 }, { NULL, 0 }, { "two ", 4 }, { "three", 5 } };
    RESULT(writev(fd, out, 4));
    char first[6] = { 0 }, second[20] = { 0 };
    struct iovec in[2] = { { first, 5 }, { second, 19 } };
    RESULT(preadv(fd, in, 2, 0));
    show_text("first", first);
    show_text("second", second);
    RESULT(lseek(fd, 0, SEEK_CUR));
    RESULT(readv(fd, in, 0));
    RESULT(readv(fd, in, -1));
    static struct iovec many[1025];
    RESULT(writev(fd, many, 1024));
    RESULT(writev(fd, many, 1025));
    struct iovec huge[2] = { { first, SSIZE_MAX }, { first, SSIZE_MAX } };
    RESULT(writev(fd, huge, 2));
    RESULT(writev(fd, BAD_POINTER, 1));
    struct iovec half[2] = { { "good", 4 }, { BAD_POINTER, 4 } };
    RESULT(writev(fd, half, 2));
    struct iovec bad[1] = { { BAD_POINTER, 4 } };
    RESULT(writev(fd, bad, 1));
    RESULT(pwritev(fd, out, 1, -1));
    return 0;
}
