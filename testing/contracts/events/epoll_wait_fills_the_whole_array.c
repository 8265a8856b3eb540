/*
 * epoll_wait(2): up to maxevents events are returned at once; maxevents below 1 or above INT_MAX / sizeof(struct
 * epoll_event) is EINVAL, an array that cannot be written is EFAULT, and the events it did not get are still there.
 */
#include "contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define COUNT 300
static struct epoll_event events[COUNT + 10];

int main(void)
{
    int set = epoll_create1(0), fds[COUNT];
    need(set != -1);
    for (int i = 0; i < COUNT; i++) {
        struct epoll_event event = { .events = EPOLLIN | (i % 2 ? EPOLLET : 0), .data.u32 = i };
        need((fds[i] = eventfd(1, EFD_NONBLOCK)) != -1 && epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event) == 0);
    }
    RESULT(epoll_wait(set, BAD_POINTER, COUNT, 0));
    RESULT(epoll_wait(set, events, COUNT + 10, 0));
    int seen[COUNT] = { 0 }, twice = 0;
    for (int i = 0; i < COUNT; i++)
        twice += seen[events[i].data.u32]++;
    show("reported twice", twice);
    section("only the level-triggered ones come again");
    RESULT(epoll_wait(set, events, COUNT + 10, 0));
    RESULT(epoll_wait(set, events, 100, 0));
    section("bounds");
    RESULT(epoll_wait(set, events, 0, 0));
    RESULT(epoll_wait(set, events, -1, 0));
    RESULT(epoll_wait(set, BAD_POINTER, INT_MAX / sizeof(struct epoll_event), 0));
    RESULT(epoll_wait(set, events, INT_MAX / sizeof(struct epoll_event) + 1, 0));
    RESULT(epoll_wait(fds[0], events, 1, 0));
    RESULT(epoll_wait(-1, events, 0, 0));
    RESULT(epoll_wait(-1, events, 1, 0));
    return 0;
}
