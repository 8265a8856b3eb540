/*
 * getrlimit(2): with RLIMIT_NOFILE used up, open, dup, pipe, socket, epoll and accept fail with EMFILE and leak
 * nothing.
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

int main(void)
{
    struct rlimit limit = { 12, 12 };
    int ends[2], last = -1, fd;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while ((fd = dup(1)) != -1)
        last = fd;
    show("last", last);
    RESULT(open("/dev/null", O_RDONLY));
    RESULT(dup(1));
    RESULT(fcntl(1, F_DUPFD, 0));
    RESULT(pipe(ends));
    RESULT(socket(AF_UNIX, SOCK_STREAM, 0));
    RESULT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    RESULT(epoll_create1(0));
    RESULT(eventfd(0, 0));
    close(last);
    section("one free: calls that need two take none");
    RESULT(pipe(ends));
    RESULT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    RESULT(dup(1));
    RESULT(dup2(1, 5));
    return 0;
}
