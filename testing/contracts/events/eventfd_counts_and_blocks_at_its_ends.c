/*
 * eventfd(2): writes add, a read takes all (or one as a semaphore), 2^64-1 is refused, an overflowing write would
 * block.
 */
#include "../contract.h"
#include <sys/eventfd.h>

static long long take(int fd)
{
    uint64_t value;
    errno = 0;
    ssize_t got = read(fd, &value, 8);
    return got == 8 ? (long long)value : -errno;
}

static ssize_t add(int fd, uint64_t value) { return write(fd, &value, 8); }

int main(void)
{
    int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC), semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    uint64_t small = 1;
    RESULT(fcntl(fd, F_GETFD));
    RESULT(add(fd, 4));
    show("all", take(fd));
    say("empty: %s", errno_name(-take(fd)));
    RESULT(add(fd, UINT64_MAX));
    RESULT(add(fd, UINT64_MAX - 1));
    RESULT(add(fd, 1));
    RESULT(add(fd, 0));
    struct pollfd wait = { fd, POLLIN | POLLOUT, 0 };
    need(poll(&wait, 1, 0) == 1);
    say("full: revents %x", wait.revents);
    show("large", take(fd) == (long long)(UINT64_MAX - 1));
    need(poll(&wait, 1, 0) == 1);
    say("empty: revents %x", wait.revents);
    show("semaphore", take(semaphore));
    show("semaphore", take(semaphore));
    say("semaphore: %s", errno_name(-take(semaphore)));
    RESULT(read(fd, &small, 7));
    RESULT(write(fd, &small, 7));
    RESULT(write(fd, BAD_POINTER, 8));
    RESULT(eventfd(0, 0x10));
    return 0;
}
