/*
 * fcntl(2): F_OFD_SETLK locks belong to the open file: they conflict inside a process and survive the close of
 * another.
 */
#include "../contract.h"

static int lock_all(int fd, int command, int kind)
{
    struct flock lock = { .l_type = kind, .l_whence = SEEK_SET };
    int result = fcntl(fd, command, &lock);
    if (command == F_OFD_GETLK && result == 0)
        say("found type %d pid %d", lock.l_type, (int)lock.l_pid);
    return result;
}

int main(void)
{
    scratch();
    put_file("file", "text", 0600);
    int one = open("file", O_RDWR), two = open("file", O_RDWR), copy = dup(one);
    RESULT(lock_all(one, F_OFD_SETLK, F_WRLCK));
    RESULT(lock_all(copy, F_OFD_SETLK, F_WRLCK));
    RESULT(lock_all(two, F_OFD_SETLK, F_RDLCK));
    RESULT(lock_all(two, F_OFD_GETLK, F_RDLCK));
    RESULT(lock_all(two, F_SETLK, F_RDLCK));
    close(open("file", O_RDONLY));
    RESULT(lock_all(two, F_OFD_SETLK, F_RDLCK));
    close(one);
    RESULT(lock_all(two, F_OFD_SETLK, F_RDLCK));
    close(copy);
    RESULT(lock_all(two, F_OFD_SETLK, F_RDLCK));
    struct flock wrong = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_pid = 5 };
    RESULT(fcntl(two, F_OFD_SETLK, &wrong));
    return 0;
}
