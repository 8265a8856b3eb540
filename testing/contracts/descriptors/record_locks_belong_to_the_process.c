/*
 * fcntl(2): record locks conflict between processes, not inside one, and closing any descriptor of the file drops
 * them.
 */
#include "../contract.h"

static int probe(void *path)
{
    int fd = open(path, O_RDWR);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0 };
    need(fcntl(fd, F_GETLK, &lock) == 0);
    say("other process: type %d start %lld length %lld by the parent %d", lock.l_type, (long long)lock.l_start,
        (long long)lock.l_len, lock.l_type != F_UNLCK && lock.l_pid == getppid());
    lock = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1 };
    RESULT(fcntl(fd, F_SETLK, &lock));
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "01234567890123456789", 0600);
    int fd = open("file", O_RDWR), second = open("file", O_RDWR), reader = open("file", O_RDONLY);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5 };
    RESULT(fcntl(fd, F_SETLK, &lock));
    RESULT(fcntl(second, F_SETLK, &lock));
    in_child(probe, "file");
    lock.l_type = F_UNLCK, lock.l_start = 12, lock.l_len = 1;
    RESULT(fcntl(fd, F_SETLK, &lock));
    in_child(probe, "file");
    close(second);
    in_child(probe, "file");
    lock.l_type = F_WRLCK;
    RESULT(fcntl(reader, F_SETLK, &lock));
    lock.l_type = 99;
    RESULT(fcntl(fd, F_SETLK, &lock));
    return 0;
}
