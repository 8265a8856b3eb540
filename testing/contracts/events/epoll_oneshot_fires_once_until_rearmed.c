/*
 * epoll_ctl(2): EPOLLONESHOT disables a descriptor after one report; EPOLL_CTL_MOD arms it again and reports what
 * is there.
 */
#include "../contract.h"
#include <sys/epoll.h>

int main(void)
{
    int ends[2], epoll = epoll_create1(0);
    struct epoll_event event = { EPOLLIN | EPOLLONESHOT, { .fd = 1 } }, got;
    need(pipe(ends) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    need(write(ends[1], "a", 1) == 1);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    need(write(ends[1], "b", 1) == 1);
    RESULT(epoll_wait(epoll, &got, 1, 20));
    close(ends[1]);
    RESULT(epoll_wait(epoll, &got, 1, 20));
    event.data.fd = 2;
    RESULT(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event));
    RESULT(epoll_wait(epoll, &got, 1, 0));
    say("events %x data %d", got.events, got.data.fd);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    return 0;
}
