/*
 * epoll(7): a level-triggered descriptor is reported while ready, an edge-triggered one only when something new
 * arrives.
 */
#include "../contract.h"
#include <sys/epoll.h>

static void run(const char *title, unsigned flags)
{
    int ends[2], epoll = epoll_create1(0);
    struct epoll_event event = { EPOLLIN | flags, { .u64 = 0x123456789abcdefULL } }, got;
    char byte;
    section(title);
    need(pipe(ends) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    need(write(ends[1], "ab", 2) == 2);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    say("events %x data kept %d", got.events, got.data.u64 == 0x123456789abcdefULL);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    need(read(ends[0], &byte, 1) == 1);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    need(write(ends[1], "c", 1) == 1);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    RESULT(epoll_wait(epoll, &got, 1, 0));
    close(ends[1]);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    say("events %x", got.events);
}

int main(void)
{
    run("level", 0);
    run("edge", EPOLLET);
    return 0;
}
