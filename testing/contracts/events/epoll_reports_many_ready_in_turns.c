/* epoll_wait(2): when more are ready than asked for, successive calls go round so that none starves. */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

int main(void)
{
    int epoll = epoll_create1(0), seen[10] = { 0 };
    for (int i = 0; i < 10; i++) {
        struct epoll_event event = { EPOLLIN, { .fd = i } };
        need(epoll_ctl(epoll, EPOLL_CTL_ADD, eventfd(1, 0), &event) == 0);
    }
    struct epoll_event got[10];
    RESULT(epoll_wait(epoll, got, 10, 0));
    for (int round = 0; round < 4; round++) {
        int count = epoll_wait(epoll, got, 3, 0);
        show("reported", count);
        for (int i = 0; i < count; i++)
            seen[got[i].data.fd]++;
    }
    int missed = 0;
    for (int i = 0; i < 10; i++)
        missed += !seen[i];
    show("never reported", missed);
    return 0;
}
