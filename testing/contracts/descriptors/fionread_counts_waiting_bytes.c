/* ioctl_tty(2), pipe(7): FIONREAD tells how many bytes wait in a pipe, a socket or before the end of a file. */
#include "../contract.h"
#include <sys/ioctl.h>
#include <sys/socket.h>

static void waiting(const char *what, int fd)
{
    int count = -7;
    int result = ioctl(fd, FIONREAD, &count);
    say("%s: %s %d", what, result ? errno_name(errno) : "ok", count);
}

int main(void)
{
    int ends[2], pair[2];
    scratch();
    put_file("file", "0123456789", 0600);
    int fd = open("file", O_RDONLY);
    need(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    waiting("empty pipe", ends[0]);
    need(write(ends[1], "12345", 5) == 5 && write(pair[1], "123", 3) == 3);
    waiting("pipe", ends[0]);
    waiting("socket", pair[0]);
    need(lseek(fd, 4, SEEK_SET) == 4);
    waiting("file", fd);
    waiting("closed", 600);
    int on = 1;
    RESULT(ioctl(ends[0], FIONBIO, &on));
    show("nonblocking now", !!(fcntl(ends[0], F_GETFL) & O_NONBLOCK));
    RESULT(ioctl(fd, TCGETS, &on));
    RESULT(ioctl(700, FIONBIO, &on));
    return 0;
}
