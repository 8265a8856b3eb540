/*
 * poll(2), epoll(7): an ordinary user polls an epoll, under very many numbers, that watches very many descriptions
 * which were ready and are not any more. It takes its time, and the system goes on meanwhile.
 * contract: timeout=60
 */
#include "security.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define NUMBERS 3500
#define FIRST 200
#define COUNTERS 24
#define PATIENCE "/proc/sys/kernel/watchdog_thresh"

static void set_patience(const char *seconds)
{
    int fd = open(PATIENCE, O_WRONLY);
    need(fd != -1 && write(fd, seconds, strlen(seconds)) > 0);
    close(fd);
}

static int attack(void *unused)
{
    static struct pollfd wishes[NUMBERS];
    struct rlimit limit;
    int counters[COUNTERS], epoll = epoll_create1(0);
    uint64_t one = 1;
    need(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max >= FIRST + NUMBERS);
    limit.rlim_cur = limit.rlim_max;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int at = 0; at < COUNTERS; at++)
        need((counters[at] = eventfd(0, EFD_NONBLOCK)) != -1 && counters[at] < FIRST);
    for (int at = 0; at < COUNTERS; at++)
        for (int number = FIRST; number < FIRST + NUMBERS; number++) {
            struct epoll_event event = { .events = EPOLLIN };
            need(dup2(counters[at], number) == number);
            need(epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event) == 0);
        }
    for (int at = 0; at < COUNTERS; at++)
        need(write(counters[at], &one, 8) == 8 && read(counters[at], &one, 8) == 8);
    for (int at = 0; at < NUMBERS; at++) {
        need(dup2(epoll, FIRST + at) == FIRST + at);
        wishes[at] = (struct pollfd){ .fd = FIRST + at, .events = POLLIN };
    }
    say("watched");
    RESULT(poll(wishes, NUMBERS, 0));
    return unused != NULL;
}

int main(void)
{
    char before[32];
    struct rlimit limit = { 4096, 4096 };
    /* Where a watchdog looks at processors, it is to be quick about it. */
    int watched = get_file(PATIENCE, before, sizeof before) > 0;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (watched)
        set_patience("2\n");
    show_status("the attack", as_nobody(attack, NULL));
    if (watched)
        set_patience(before);
    return 0;
}
