/*
 * flock(2): a lock belongs to the open file description: dup shares it, a second open conflicts, the last close
 * drops it.
 */
#include "../contract.h"
#include <sys/file.h>

int main(void)
{
    scratch();
    put_file("file", "", 0600);
    int fd = open("file", O_RDWR), copy = dup(fd), other = open("file", O_RDONLY);
    RESULT(flock(fd, LOCK_EX | LOCK_NB));
    RESULT(flock(copy, LOCK_EX | LOCK_NB));
    RESULT(flock(other, LOCK_SH | LOCK_NB));
    RESULT(flock(copy, LOCK_SH | LOCK_NB));
    RESULT(flock(other, LOCK_SH | LOCK_NB));
    RESULT(flock(fd, LOCK_EX | LOCK_NB));
    close(fd);
    RESULT(flock(other, LOCK_EX | LOCK_NB));
    close(copy);
    RESULT(flock(other, LOCK_EX | LOCK_NB));
    RESULT(flock(other, LOCK_UN));
    RESULT(flock(other, 99));
    RESULT(flock(-1, LOCK_SH));
    return 0;
}
