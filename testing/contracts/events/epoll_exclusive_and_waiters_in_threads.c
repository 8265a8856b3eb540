/*
 * epoll_ctl(2): one event wakes at least one of several waiters; EPOLLEXCLUSIVE cannot be changed or combined with
 * oneshot.
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int counter, woken;

static void *waiter(void *unused)
{
    int epoll = epoll_create1(0);
    struct epoll_event event = { EPOLLIN | EPOLLEXCLUSIVE, { .fd = 1 } }, got;
    need(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event) == 0);
    if (epoll_wait(epoll, &got, 1, 2000) == 1) {
        uint64_t units;
        __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
        need(read(counter, &units, 8) == 8 || errno == EAGAIN);
    }
    close(epoll);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    uint64_t three = 3;
    counter = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
    for (int i = 0; i < 3; i++)
        need(pthread_create(&threads[i], NULL, waiter, NULL) == 0);
    sleep_ms(50);
    need(write(counter, &three, 8) == 8);
    sleep_ms(50);
    check(__atomic_load_n(&woken, __ATOMIC_SEQ_CST) >= 1, "at least one waiter woke");
    while (__atomic_load_n(&woken, __ATOMIC_SEQ_CST) < 3) {
        uint64_t one = 1;
        need(write(counter, &one, 8) == 8);
        sleep_ms(10);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    show("woken", woken);
    int epoll = epoll_create1(0);
    struct epoll_event event = { EPOLLIN | EPOLLEXCLUSIVE, { .fd = 1 } };
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_MOD, counter, &event));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_DEL, counter, NULL));
    event.events |= EPOLLONESHOT;
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event));
    return 0;
}
