/*
 * timerfd_create(2): to make a timer on the wall clock and close it costs about the same whether few or thousands of
 * others are there.
 * contract: timeout=60
 */
#include "../contract.h"
#include <sys/resource.h>
#include <sys/timerfd.h>

#define OTHERS 3900
#define ATTEMPTS 7
#define CALLS 200

static long long shortest(void)
{
    long long best = LLONG_MAX;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        for (int at = 0; at < CALLS; at++) {
            int fd = timerfd_create(CLOCK_REALTIME, 0);
            need(fd != -1);
            close(fd);
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        long long took = (ended.tv_sec - began.tv_sec) * 1000000000LL + ended.tv_nsec - began.tv_nsec;
        best = took < best ? took : best;
    }
    return best;
}

int main(void)
{
    struct rlimit limit = { 4096, 4096 };
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    long long few = shortest();
    for (int at = 0; at < OTHERS; at++)
        need(timerfd_create(CLOCK_REALTIME, 0) != -1);
    check(shortest() < 4 * few, "a timer is not four times dearer");
    return 0;
}
