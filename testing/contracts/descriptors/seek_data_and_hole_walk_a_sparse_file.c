/* lseek(2): SEEK_DATA and SEEK_HOLE find the next data and the next hole; the end of the file counts as a hole. */
#include "../contract.h"

int main(void)
{
    scratch();
    int fd = open("sparse", O_RDWR | O_CREAT, 0600);
    need(pwrite(fd, "x", 1, 0) == 1 && pwrite(fd, "y", 1, 8 * 4096) == 1);
    RESULT(lseek(fd, 0, SEEK_DATA));
    RESULT(lseek(fd, 0, SEEK_HOLE));
    RESULT(lseek(fd, 4096, SEEK_DATA));
    RESULT(lseek(fd, 8 * 4096, SEEK_HOLE));
    RESULT(lseek(fd, 8 * 4096 + 1, SEEK_DATA));
    RESULT(lseek(fd, 100000, SEEK_DATA));
    RESULT(lseek(fd, 100000, SEEK_HOLE));
    RESULT(lseek(fd, -1, SEEK_DATA));
    return 0;
}
