/*
 * fcntl(2): closing a descriptor of a file gives up the process's record locks on it, also one that another thread is
 * just setting through that descriptor: either there is no lock in the end, or the descriptor is still open.
 * contract: timeout=40
 */
#include "security.h"
#include <stdatomic.h>

enum { ROUNDS = 500 };

static atomic_int turn, done;
static int raced, refused;

static void set_lock(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_SETLK, &lock) == -1)
        refused += errno != EBADF;
}

static void *locks(void *unused)
{
    for (int at = 1; at <= ROUNDS; at++) {
        while (atomic_load(&turn) < at)
            sched_yield();
        set_lock(raced);
        atomic_store(&done, at);
    }
    return unused;
}

/* Answers for each byte whether the file is locked. */
static int asks(void *pipes)
{
    int *ends = pipes;
    int fd = open("file", O_RDWR);
    char byte;
    while (read(ends[0], &byte, 1) == 1) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        need(fcntl(fd, F_GETLK, &lock) == 0);
        byte = lock.l_type != F_UNLCK;
        need(write(ends[3], &byte, 1) == 1);
    }
    return 0;
}

int main(void)
{
    int ends[4], left = 0;
    pthread_t thread;
    scratch();
    put_file("file", "text", 0600);
    need(pipe(ends) == 0 && pipe(ends + 2) == 0);
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        close(ends[1]);
        _exit(asks(ends));
    }
    need(pthread_create(&thread, NULL, locks, NULL) == 0);
    for (int at = 1; at <= ROUNDS; at++) {
        raced = open("file", O_RDWR);
        need(raced != -1);
        atomic_store(&turn, at);
        for (volatile int wait = at * 7 % 400; wait > 0; wait--)
            ;
        close(raced);
        while (atomic_load(&done) < at)
            sched_yield();
        char byte = 0;
        need(write(ends[1], &byte, 1) == 1 && read(ends[2], &byte, 1) == 1);
        left += byte;
        close(open("file", O_RDWR));
    }
    pthread_join(thread, NULL);
    show("locks without a descriptor", left);
    show("refused", refused);
    close(ends[1]);
    show_status("helper", reap(child));
    return 0;
}
