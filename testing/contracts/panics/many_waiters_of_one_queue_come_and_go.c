/*
 * poll(2), epoll(7): many threads that each poll one file under thousands of numbers, and tens of thousands of watches
 * of one file, come and go in a time that grows with their number, not with its square.
 * contract: timeout=30
 */
#include "contract.h"
#include <sys/epoll.h>
#include <sys/resource.h>

enum { THREADS = 60, NUMBERS = 4000, SETS = 25, WATCHES = 2000 };

static int ends[2];

static void *polls(void *unused)
{
    static struct pollfd all[NUMBERS];
    struct pollfd *own = malloc(sizeof all);
    for (int i = 0; i < NUMBERS; i++)
        own[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
    for (int i = 0; i < 2; i++)
        need(poll(own, NUMBERS, 300) == 0);
    free(own);
    return unused;
}

int main(void)
{
    struct rlimit limit = { 4096, 4096 };
    pthread_t threads[THREADS];
    pthread_attr_t small;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0 && pipe(ends) == 0);
    need(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 16384) == 0);
    for (int i = 0; i < THREADS; i++)
        need(pthread_create(&threads[i], &small, polls, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        need(pthread_join(threads[i], NULL) == 0);
    say("%d threads polled", THREADS);
    int sets[SETS];
    struct epoll_event event = { .events = EPOLLIN };
    for (int i = 0; i < WATCHES; i++)
        need(fcntl(ends[0], F_DUPFD, 1000) == 1000 + i);
    for (int i = 0; i < SETS; i++) {
        need((sets[i] = epoll_create1(0)) != -1);
        for (int k = 0; k < WATCHES; k++)
            need(epoll_ctl(sets[i], EPOLL_CTL_ADD, 1000 + k, &event) == 0);
    }
    need(write(ends[1], "x", 1) == 1);
    for (int i = 0; i < SETS; i++)
        need(epoll_wait(sets[i], &event, 1, 1000) == 1);
    for (int i = SETS - 1; i >= 0; i--)
        close(sets[i]);
    say("%d watches came and went", SETS * WATCHES);
    return 0;
}
