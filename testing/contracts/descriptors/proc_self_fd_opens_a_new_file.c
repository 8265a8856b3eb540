/*
 * proc(5): opening /proc/self/fd/N makes a new open file with its own offset and access mode, even of a deleted
 * file.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "abcdef", 0600);
    int fd = open("file", O_RDONLY), ends[2];
    char path[64], byte;
    need(read(fd, &byte, 1) == 1 && unlink("file") == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR);
    need(again != -1);
    show("own offset", lseek(again, 0, SEEK_CUR));
    RESULT(write(again, "X", 1));
    RESULT(pread(fd, &byte, 1, 0));
    say("byte %c, first offset still %lld", byte, (long long)lseek(fd, 0, SEEK_CUR));
    need(pipe(ends) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    int writer = open(path, O_WRONLY);
    RESULT(write(writer, "through", 7));
    char text[16];
    RESULT(read(ends[0], text, 16));
    close(fd);
    close(again);
    RESULT(open("/proc/self/fd/900", O_RDONLY));
    return 0;
}
