/*
 * poll(2): readable, writable, hung up, in error and invalid descriptors each have their bits; negative ones are
 * skipped.
 */
#include "../contract.h"
#include <sys/socket.h>

static void look(const char *what, int fd, short events)
{
    struct pollfd wait = { fd, events, 0x55 };
    int count = poll(&wait, 1, 0);
    say("%s: %d revents %x", what, count, wait.revents);
}

int main(void)
{
    scratch();
    put_file("file", "x", 0600);
    int ends[2], pair[2];
    need(pipe2(ends, O_NONBLOCK) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    short all = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;
    look("empty pipe, read end", ends[0], all);
    look("empty pipe, write end", ends[1], all);
    static char block[65536];
    need(write(ends[1], block, sizeof block) == sizeof block);
    look("full pipe, read end", ends[0], all);
    look("full pipe, write end", ends[1], all);
    close(ends[1]);
    look("data and no writer", ends[0], all);
    while (read(ends[0], block, sizeof block) > 0)
        ;
    look("no writer", ends[0], all);
    need(pipe(ends) == 0);
    close(ends[0]);
    look("no reader", ends[1], all);
    look("socket", pair[0], all);
    shutdown(pair[1], SHUT_WR);
    look("peer will not write", pair[0], all);
    close(pair[1]);
    look("peer closed", pair[0], all);
    look("plain file", open("file", O_RDONLY), all);
    look("closed descriptor", 700, all);
    look("negative", -1, all);
    look("nothing asked, hung up", pair[0], 0);
    return 0;
}
