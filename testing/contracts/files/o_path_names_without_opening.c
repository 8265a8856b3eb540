/*
 * open(2): an O_PATH descriptor names a file: no read, no permission needed, but fstat, *at calls and
 * /proc/self/fd work.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "text", 0600);
    int fd = open("file", O_PATH);
    struct stat meta;
    char path[64], byte;
    need(fd != -1);
    RESULT(fcntl(fd, F_GETFL) & O_PATH ? 1 : 0);
    RESULT(read(fd, &byte, 1));
    RESULT(fstat(fd, &meta));
    RESULT(fchmod(fd, 0644));
    RESULT(fchown(fd, 0, 0));
    RESULT(ftruncate(fd, 0));
    RESULT(lseek(fd, 0, SEEK_SET));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
    OUTCOME(dup(fd));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDONLY);
    RESULT(read(again, &byte, 1));
    OUTCOME(open("file", O_PATH | O_DIRECTORY));
    return 0;
}
