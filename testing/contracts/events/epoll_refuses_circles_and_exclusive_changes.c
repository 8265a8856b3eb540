/*
 * epoll_ctl(2): epolls never watch each other in a circle (ELOOP), and none watches itself (EINVAL). EPOLLEXCLUSIVE
 * is refused (EINVAL) for epolls, in EPOLL_CTL_MOD and with events other than the few it goes with.
 */
#include "contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int watch(int set, int operation, int fd, unsigned events)
{
    struct epoll_event event = { .events = events };
    return epoll_ctl(set, operation, fd, &event);
}

int main(void)
{
    int sets[10];
    for (int i = 0; i < 10; i++)
        need((sets[i] = epoll_create1(0)) != -1);
    for (int i = 0; i < 3; i++)
        need(watch(sets[i], EPOLL_CTL_ADD, sets[i + 1], EPOLLIN) == 0);
    section("circles");
    RESULT(watch(sets[1], EPOLL_CTL_ADD, sets[0], EPOLLIN));
    RESULT(watch(sets[3], EPOLL_CTL_ADD, sets[0], EPOLLIN));
    RESULT(watch(sets[0], EPOLL_CTL_ADD, sets[0], EPOLLIN));
    RESULT(watch(sets[0], EPOLL_CTL_DEL, sets[0], EPOLLIN));
    section("EPOLLEXCLUSIVE");
    int fd = eventfd(0, 0), set = epoll_create1(0);
    RESULT(watch(set, EPOLL_CTL_ADD, sets[9], EPOLLIN | EPOLLEXCLUSIVE));
    RESULT(watch(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT));
    RESULT(watch(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP));
    RESULT(watch(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLPRI));
    unsigned all = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;
    RESULT(watch(set, EPOLL_CTL_ADD, fd, all));
    RESULT(watch(set, EPOLL_CTL_MOD, fd, EPOLLIN));
    RESULT(watch(set, EPOLL_CTL_DEL, fd, 0));
    RESULT(watch(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    RESULT(watch(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLEXCLUSIVE));
    RESULT(watch(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT));
    section("order of checks");
    RESULT(epoll_ctl(set, 77, fd, BAD_POINTER));
    RESULT(watch(set, 77, fd, EPOLLIN));
    RESULT(epoll_ctl(-1, EPOLL_CTL_ADD, -1, BAD_POINTER));
    RESULT(epoll_ctl(fd, EPOLL_CTL_ADD, fd, BAD_POINTER));
    RESULT(watch(fd, EPOLL_CTL_ADD, set, EPOLLIN));
    RESULT(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    return 0;
}
