/*
 * epoll(7): on sockets EPOLLRDHUP tells the peer stopped writing, EPOLLHUP that both ends did, EPOLLOUT that there
 * is room.
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/socket.h>

static int epoll;

static void look(const char *what)
{
    struct epoll_event got = { 0 };
    int count = epoll_wait(epoll, &got, 1, 0);
    say("%s: %d events %x", what, count, got.events);
}

int main(void)
{
    int pair[2];
    static char block[70000];
    epoll = epoll_create1(0);
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    struct epoll_event event = { EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, { .fd = 0 } };
    need(epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event) == 0);
    look("fresh");
    look("nothing new");
    need(write(pair[1], "x", 1) == 1);
    look("input");
    while (write(pair[0], block, sizeof block) > 0)
        ;
    look("full");
    while (read(pair[1], block, sizeof block) > 0)
        ;
    look("room again");
    shutdown(pair[1], SHUT_WR);
    look("peer stopped writing");
    close(pair[1]);
    look("peer closed");
    event.events = 0;
    need(epoll_ctl(epoll, EPOLL_CTL_MOD, pair[0], &event) == 0);
    look("nothing asked");
    return 0;
}
