/* epoll_ctl(2): double add is EEXIST, unknown ENOENT, plain files EPERM, an epoll in itself EINVAL, loops ELOOP. */
#include "../contract.h"
#include <sys/epoll.h>

int main(void)
{
    scratch();
    put_file("file", "x", 0600);
    int ends[2], epoll = epoll_create1(EPOLL_CLOEXEC), other = epoll_create(1), file = open("file", O_RDWR);
    struct epoll_event event = { .events = EPOLLIN }, got;
    need(pipe(ends) == 0);
    RESULT(fcntl(epoll, F_GETFD));
    RESULT(epoll_create(0));
    RESULT(epoll_create1(1));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[1], &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_DEL, ends[1], NULL));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_DEL, ends[0], NULL));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, 500, &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event));
    RESULT(epoll_ctl(file, EPOLL_CTL_ADD, ends[0], &event));
    RESULT(epoll_ctl(500, EPOLL_CTL_ADD, ends[0], &event));
    RESULT(epoll_ctl(epoll, 9, ends[0], &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], BAD_POINTER));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, other, &event));
    RESULT(epoll_ctl(other, EPOLL_CTL_ADD, epoll, &event));
    RESULT(epoll_wait(epoll, &got, 0, 0));
    RESULT(epoll_wait(epoll, &got, -1, 0));
    RESULT(epoll_wait(file, &got, 1, 0));
    RESULT(epoll_wait(500, &got, 1, 0));
    return 0;
}
