/*
 * epoll(7), close(2): closing descriptions that an epoll watches, and taking them out of it, costs about the same
 * whether it watches few others or very many.
 * contract: timeout=60
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define FIRST 100
#define LAST 3100
#define COUNTERS 20
#define CLOSED 200

static long long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = { .events = EPOLLIN };
    need(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

static long long time_to_close(int epoll)
{
    int counters[CLOSED];
    for (int at = 0; at < CLOSED; at++) {
        counters[at] = eventfd(0, EFD_NONBLOCK);
        need(counters[at] != -1);
        watch(epoll, counters[at]);
    }
    long long began = now_us();
    for (int at = 0; at < CLOSED; at += 2) {
        need(epoll_ctl(epoll, EPOLL_CTL_DEL, counters[at], NULL) == 0);
        close(counters[at + 1]);
    }
    long long took = now_us() - began;
    for (int at = 0; at < CLOSED; at += 2)
        close(counters[at]);
    return took;
}

static long long shortest_time(int epoll)
{
    long long best = LLONG_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        long long took = time_to_close(epoll);
        best = took < best ? took : best;
    }
    return best;
}

int main(void)
{
    struct rlimit limit = { 4096, 4096 };
    int epoll = epoll_create1(0);
    need(epoll != -1 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
    long long small = shortest_time(epoll);
    for (int at = 0; at < COUNTERS; at++) {
        int counter = eventfd(0, EFD_NONBLOCK);
        need(counter != -1 && counter < FIRST);
        for (int number = FIRST; number < LAST; number++) {
            need(dup2(counter, number) == number);
            watch(epoll, number);
        }
    }
    long long large = shortest_time(epoll);
    check(large < 20 * small, "closing among 60,000 watches is not twenty times dearer");
    return 0;
}
