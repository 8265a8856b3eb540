/*
 * close_range(2), execve(2), epoll(7): an ordinary user closes thousands of descriptions that an epoll watches beside
 * very many others, or has an execution close them. It takes its time, and the system goes on meanwhile.
 * contract: timeout=60
 */
#include "security.h"
#include <linux/close_range.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define FIRST 100
#define LAST 4000
#define COUNTERS 20
#define PATIENCE "/proc/sys/kernel/watchdog_thresh"

static void set_patience(const char *seconds)
{
    int fd = open(PATIENCE, O_WRONLY);
    need(fd != -1 && write(fd, seconds, strlen(seconds)) > 0);
    close(fd);
}

static int attack(void *by_execution)
{
    struct rlimit limit = { 4096, 4096 };
    int epoll = epoll_create1(0);
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int at = 0; at < COUNTERS; at++) {
        int counter = eventfd(0, EFD_NONBLOCK);
        need(counter != -1 && counter < FIRST);
        for (int number = FIRST; number < LAST; number++) {
            struct epoll_event event = { .events = EPOLLIN };
            need(dup2(counter, number) == number && epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event) == 0);
        }
    }
    need(syscall(SYS_close_range, FIRST, LAST, 0) == 0);
    for (int number = FIRST; number < LAST; number++) {
        struct epoll_event event = { .events = EPOLLIN };
        int counter = eventfd(1, EFD_NONBLOCK | (by_execution ? EFD_CLOEXEC : 0));
        need(counter != -1 && epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event) == 0);
    }
    say("watched");
    if (by_execution)
        execl("/proc/self/exe", "self", "executed", NULL);
    RESULT(syscall(SYS_close_range, FIRST, LAST, 0));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return argv[1][0] == 0;

    char before[32];
    struct rlimit limit = { 4096, 4096 };
    /* Where a watchdog looks at processors, it is to be quick about it. */
    int watched = get_file(PATIENCE, before, sizeof before) > 0;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (watched)
        set_patience("1\n");
    section("by close_range");
    show_status("the attack", as_nobody(attack, NULL));
    section("by an execution");
    show_status("the attack", as_nobody(attack, ""));
    if (watched)
        set_patience(before);
    return 0;
}
