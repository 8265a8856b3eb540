/*
 * fcntl(2), O_ASYNC: a signal when input arrives is a thing of terminals, sockets and pipes. Other descriptors take the
 * flag and send nothing, however they are tied to each other and to signals.
 */
#include "../contract.h"
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static volatile int told;

static void note(int number)
{
    (void)number;
    told++;
}

static void watch(const char *kind, int fd)
{
    int on = 1;
    say("-- %s", kind);
    RESULT(fcntl(fd, F_SETOWN, getpid()));
    RESULT(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
    show("O_ASYNC is set", (fcntl(fd, F_GETFL) & O_ASYNC) != 0);
    RESULT(ioctl(fd, FIOASYNC, &on));
    told = 0;
}

static void heard(void)
{
    sleep_ms(5);
    show("signals for it", told != 0);
}

int main(void)
{
    sigset_t set;
    int pair[2], ends[2];
    uint64_t one = 1;
    catch_signal(SIGIO, note, SA_RESTART);
    catch_signal(SIGURG, note, SA_RESTART);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    int signals = signalfd(-1, &set, 0);
    watch("signalfd", signals);
    need(raise(SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0);
    heard();
    section("signalfd that reads its own notice");
    sigaddset(&set, SIGIO);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && signalfd(signals, &set, 0) == signals);
    need(fcntl(signals, F_SETSIG, SIGIO) == 0 && kill(getpid(), SIGUSR1) == 0);
    sigset_t waiting;
    need(sigpending(&waiting) == 0);
    show("SIGIO waits", sigismember(&waiting, SIGIO));
    sigdelset(&set, SIGUSR1);
    need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    int counter = eventfd(0, 0);
    watch("eventfd", counter);
    need(write(counter, &one, 8) == 8);
    heard();
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec soon = { .it_value = { 0, 1000000 } };
    watch("timerfd", timer);
    need(timerfd_settime(timer, 0, &soon, NULL) == 0);
    heard();
    int events = epoll_create1(0), outer = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    need(epoll_ctl(outer, EPOLL_CTL_ADD, events, &event) == 0);
    need(epoll_ctl(events, EPOLL_CTL_ADD, signals, &event) == 0);
    watch("epoll", events);
    need(epoll_ctl(events, EPOLL_CTL_ADD, counter, &event) == 0 && kill(getpid(), SIGUSR1) == 0);
    heard();
    struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 8 };
    mqd_t queue = mq_open("/async-contract", O_RDWR | O_CREAT, 0600, &attr);
    need(queue != -1);
    mq_unlink("/async-contract");
    watch("message queue", queue);
    need(mq_send(queue, "x", 1, 0) == 0);
    heard();
    need(pipe(ends) == 0);
    watch("pipe", ends[0]);
    need(write(ends[1], "x", 1) == 1);
    heard();
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    watch("socket", pair[0]);
    need(write(pair[1], "x", 1) == 1);
    heard();
    section("a pipe whose notice is read by signalfd and watched by epoll");
    sigaddset(&set, SIGIO);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    need(read(ends[0], &one, 1) == 1 && epoll_ctl(events, EPOLL_CTL_ADD, ends[0], &event) == 0);
    need(write(ends[1], "y", 1) == 1);
    struct signalfd_siginfo info;
    need(signalfd(signals, &set, SFD_NONBLOCK) == signals);
    int seen = 0;
    while (read(signals, &info, sizeof info) == sizeof info)
        seen += info.ssi_signo == SIGIO;
    show("notices read", seen);
    return 0;
}
