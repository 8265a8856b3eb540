/* epoll(7): an epoll descriptor is readable when something inside is ready, for poll and for another epoll. */
#include "../contract.h"
#include <sys/epoll.h>

static int writer(void *end)
{
    sleep_ms(40);
    return write(*(int *)end, "x", 1) != 1;
}

int main(void)
{
    int ends[2], inner = epoll_create1(0), outer = epoll_create1(0);
    struct epoll_event event = { EPOLLIN, { .fd = 3 } }, got;
    need(pipe(ends) == 0);
    need(epoll_ctl(inner, EPOLL_CTL_ADD, ends[0], &event) == 0);
    need(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) == 0);
    struct pollfd wait = { outer, POLLIN, 0 };
    RESULT(poll(&wait, 1, 0));
    pid_t child = spawn(writer, &ends[1]);
    RESULT(poll(&wait, 1, 3000));
    show("revents", wait.revents);
    RESULT(epoll_wait(outer, &got, 1, 0));
    RESULT(epoll_wait(inner, &got, 1, 0));
    show_status("writer", reap(child));
    char byte;
    need(read(ends[0], &byte, 1) == 1);
    RESULT(epoll_wait(outer, &got, 1, 0));
    RESULT(poll(&wait, 1, 0));
    return 0;
}
