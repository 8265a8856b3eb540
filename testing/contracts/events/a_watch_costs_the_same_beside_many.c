/*
 * epoll(7): to watch a description, and no more, costs about the same whether few or thousands of epolls watch it; so
 * does taking one out of an epoll in which it stands ready behind thousands.
 * contract: timeout=60
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define EPOLLS 3600
#define READY 40
#define NUMBERS 300
#define ATTEMPTS 7
#define CALLS 100

static int epoll, counter, inner, large, last;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void watch(int set, int fd)
{
    struct epoll_event event = { .events = EPOLLIN };
    need(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void leave(int set, int fd)
{
    need(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL) == 0);
}

static void one_file(void)
{
    watch(epoll, counter);
    leave(epoll, counter);
}

static void one_epoll(void)
{
    watch(epoll, inner);
    leave(epoll, inner);
}

static void the_last_ready(void)
{
    leave(large, last);
    watch(large, last);
}

static long long shortest(void (*body)(void))
{
    long long best = LLONG_MAX;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        long long began = now_ns();
        for (int at = 0; at < CALLS; at++)
            body();
        long long took = now_ns() - began;
        best = took < best ? took : best;
    }
    return best;
}

int main(void)
{
    struct rlimit limit = { 4096, 4096 };
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    epoll = epoll_create1(0), inner = epoll_create1(0), large = epoll_create1(0), counter = eventfd(0, 0);
    need(epoll != -1 && inner != -1 && large != -1 && counter != -1);
    last = eventfd(1, 0);
    need(last != -1);
    watch(large, last);
    long long few[3] = { shortest(one_file), shortest(one_epoll), shortest(the_last_ready) };
    for (int at = 0; at < EPOLLS; at++) {
        int other = epoll_create1(0);
        need(other != -1);
        watch(other, counter);
        watch(other, inner);
    }
    /* Descriptions that are ready, each under many numbers. */
    leave(large, last);
    for (int at = 0; at < READY; at++) {
        int ready = eventfd(1, 0);
        need(ready != -1);
        for (int number = 3700; number < 3700 + NUMBERS; number++) {
            need(dup2(ready, number) == number);
            watch(large, number);
        }
    }
    watch(large, last);
    check(shortest(one_file) < 6 * few[0], "watching a file is not six times dearer");
    check(shortest(one_epoll) < 6 * few[1], "watching an epoll is not six times dearer");
    check(shortest(the_last_ready) < 6 * few[2], "taking out the last that is ready is not six times dearer");
    return 0;
}
