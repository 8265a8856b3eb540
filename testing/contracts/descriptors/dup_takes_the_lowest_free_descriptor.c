/* dup(2): dup returns the lowest descriptor that is free, and the copy shares the file offset but not the flags. */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("text", "abcdefgh", 0644);
    int fd = open("text", O_RDONLY | O_CLOEXEC);
    int second = dup(fd), third = dup(fd);
    show("second - first", second - fd);
    show("third - second", third - second);
    close(second);
    int again = dup(fd);
    show("the hole is used again", again == second);
    char byte;
    need(read(fd, &byte, 1) == 1);
    show("offset seen through the copy", lseek(again, 0, SEEK_CUR));
    show("close-on-exec of the original", fcntl(fd, F_GETFD));
    show("close-on-exec of the copy", fcntl(again, F_GETFD));
    RESULT(dup(-1));
    RESULT(dup(900));
    close(fd);
    check(read(again, &byte, 1) == 1 && byte == 'b', "the copy outlives the original");
    return 0;
}
