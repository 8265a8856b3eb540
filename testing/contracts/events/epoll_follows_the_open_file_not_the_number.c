/* epoll(7): a registration lives until the open file description is closed everywhere; a duplicate keeps it alive. */
#include "../contract.h"
#include <sys/epoll.h>

int main(void)
{
    int ends[2], epoll = epoll_create1(0);
    struct epoll_event event = { EPOLLIN, { .fd = 7 } }, got;
    need(pipe(ends) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    int copy = dup(ends[0]);
    event.data.fd = 8;
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, copy, &event));
    need(write(ends[1], "x", 1) == 1);
    struct epoll_event two[4];
    RESULT(epoll_wait(epoll, two, 4, 0));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_DEL, copy, NULL));
    int number = ends[0];
    close(number);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    show("still reported with data", got.data.fd);
    RESULT(epoll_ctl(epoll, EPOLL_CTL_DEL, number, NULL));
    close(copy);
    RESULT(epoll_wait(epoll, &got, 1, 0));
    return 0;
}
