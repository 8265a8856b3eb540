/*
 * signalfd(2): a reader of a signal descriptor is woken by signals of its own process, not by those of others.
 * A descriptor that an epoll watches reports signals of the process that added it.
 */
#include "contract.h"
#include <sys/epoll.h>
#include <sys/signalfd.h>

static int descriptor, set_of_events;

static int reads(void *unused)
{
    (void)unused;
    struct signalfd_siginfo info;
    int got = read(descriptor, &info, sizeof info);
    say("reader: %s", got == sizeof info ? signal_name(info.ssi_signo) : "failed");
    return 0;
}

static int polls(void *unused)
{
    (void)unused;
    struct pollfd one = { .fd = descriptor, .events = POLLIN };
    show("poll", poll(&one, 1, 8000));
    return 0;
}

static int waits(void *unused)
{
    (void)unused;
    struct epoll_event event = { .events = EPOLLIN };
    int own = epoll_create1(0);
    need(epoll_ctl(own, EPOLL_CTL_ADD, descriptor, &event) == 0);
    show("epoll", epoll_wait(own, &event, 1, 8000));
    return 0;
}

/* The set was filled by the parent. */
static int waits_in_parents_set(void *unused)
{
    (void)unused;
    struct epoll_event event;
    need(raise(SIGUSR1) == 0);
    show("a signal of this process in the parent's set", epoll_wait(set_of_events, &event, 1, 100));
    RESULT(epoll_ctl(set_of_events, EPOLL_CTL_DEL, descriptor, NULL));
    return 0;
}

static long sleeps_of(pid_t pid)
{
    char path[64], text[4096], *at;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    need(get_file(path, text, sizeof text) > 0 && (at = strstr(text, "\nvoluntary_ctxt_switches:")));
    return strtol(at + 25, NULL, 10);
}

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    descriptor = signalfd(-1, &set, 0);
    need(descriptor != -1);
    int (*const ways[])(void *) = { reads, polls, waits };
    pid_t children[3];
    long before[3];
    for (int i = 0; i < 3; i++)
        children[i] = spawn(ways[i], NULL);
    sleep_ms(200);
    for (int i = 0; i < 3; i++)
        before[i] = sleeps_of(children[i]);
    for (int i = 0; i < 100; i++) {
        need(sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = i }) == 0);
        if (i % 10 == 0)
            sleep_ms(2);
    }
    for (int i = 0; i < 3; i++)
        say("waiter %d was woken: %s", i, sleeps_of(children[i]) - before[i] > 3 ? "yes" : "no");
    for (int i = 0; i < 3; i++) {
        need(kill(children[i], SIGUSR1) == 0);
        show_status("waiter", reap(children[i]));
    }
    struct signalfd_siginfo info;
    for (int i = 0; i < 100; i++)
        need(read(descriptor, &info, sizeof info) == sizeof info && info.ssi_int == i);
    section("in an epoll");
    struct epoll_event event = { .events = EPOLLIN };
    set_of_events = epoll_create1(0);
    need(epoll_ctl(set_of_events, EPOLL_CTL_ADD, descriptor, &event) == 0);
    show_status("child", in_child(waits_in_parents_set, NULL));
    need(raise(SIGUSR1) == 0);
    show("after the child took it out", epoll_wait(set_of_events, &event, 1, 100));
    RESULT(epoll_ctl(set_of_events, EPOLL_CTL_ADD, descriptor, &event));
    show("added again", epoll_wait(set_of_events, &event, 1, 100));
    need(read(descriptor, &info, sizeof info) == sizeof info);
    show("after the read", epoll_wait(set_of_events, &event, 1, 0));
    need(raise(SIGUSR1) == 0);
    show("after another signal", epoll_wait(set_of_events, &event, 1, 100));
    close(descriptor);
    show("closed", epoll_wait(set_of_events, &event, 1, 0));
    return 0;
}
