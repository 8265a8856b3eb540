/* fcntl(2): F_SETLKW waits until the lock is free, is interrupted by a signal, and a cycle of waiters is EDEADLK. */
#include "../contract.h"

static int lock_byte(int fd, int command, int byte, int kind)
{
    struct flock lock = { .l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
    return fcntl(fd, command, &lock);
}

static void note(int number) { (void)number; }

static int child(void *ends)
{
    int fd = open("file", O_RDWR);
    need(lock_byte(fd, F_SETLK, 2, F_WRLCK) == 0 && write(((int *)ends)[1], "x", 1) == 1);
    int got = lock_byte(fd, F_SETLKW, 1, F_WRLCK);
    return got == 0 ? 0 : 1;
}

int main(void)
{
    scratch();
    put_file("file", "12345", 0600);
    int fd = open("file", O_RDWR), ends[2];
    char byte;
    need(pipe(ends) == 0);
    RESULT(lock_byte(fd, F_SETLK, 1, F_WRLCK));
    pid_t pid = spawn(child, ends);
    need(read(ends[0], &byte, 1) == 1);
    sleep_ms(200);
    RESULT(lock_byte(fd, F_SETLKW, 2, F_WRLCK));
    catch_signal(SIGALRM, note, 0);
    RESULT(lock_byte(fd, F_SETLK, 2, F_RDLCK));
    RESULT(lock_byte(fd, F_SETLK, 1, F_UNLCK));
    show_status("child got its lock", reap(pid));
    RESULT(lock_byte(fd, F_SETLK, 2, F_WRLCK));
    return 0;
}
