/*
 * timer_settime(2), setitimer(2), timerfd_settime(2): however many timers go off how often, programs get on, and calls
 * that wait end in time.
 * contract: timeout=40
 */
#include "../contract.h"
#include <sys/timerfd.h>

#define TIMERS 100

/* A handler may be all that runs from here on. */
static void handle(int number)
{
    static volatile long handled;
    (void)number;
    if (++handled == 500)
        _exit(0);
}

static void start(int notify, int signal, clockid_t clock)
{
    struct itimerspec fast = { .it_interval = { 0, 1000 }, .it_value = { 0, 1000 } };
    for (int i = 0; i < TIMERS; i++) {
        struct sigevent event = { .sigev_notify = notify, .sigev_signo = signal };
        timer_t timer;
        need(timer_create(clock, &event, &timer) == 0 && timer_settime(timer, 0, &fast, NULL) == 0);
    }
}

static int silent(void *unused)
{
    (void)unused;
    start(SIGEV_NONE, 0, CLOCK_MONOTONIC);
    sleep_ms(200);
    return 0;
}

static int silent_once(void *unused)
{
    (void)unused;
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    struct itimerspec once = { .it_value = { 0, 1000000 } }, left;
    timer_t timer;
    need(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &once, NULL) == 0);
    sleep_ms(20);
    need(timer_gettime(timer, &left) == 0);
    show("left of one that is over", left.it_value.tv_sec * 1000000000L + left.it_value.tv_nsec);
    once.it_value.tv_sec = once.it_interval.tv_sec = 100;
    need(timer_settime(timer, 0, &once, NULL) == 0 && timer_gettime(timer, &left) == 0);
    check(left.it_value.tv_sec >= 90 && left.it_value.tv_sec <= 100, "one that runs has time left");
    once.it_value.tv_sec = 0;
    once.it_value.tv_nsec = 1000;
    need(timer_settime(timer, 0, &once, NULL) == 0);
    sleep_ms(5);
    need(timer_gettime(timer, &left) == 0);
    check(left.it_value.tv_sec >= 90 && left.it_value.tv_sec <= 100, "one that repeats has its interval left");
    return 0;
}

static int ignored(void *unused)
{
    (void)unused;
    signal(SIGRTMIN, SIG_IGN);
    start(SIGEV_SIGNAL, SIGRTMIN, CLOCK_REALTIME);
    sleep_ms(200);
    return 0;
}

static int blocked(void *unused)
{
    (void)unused;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    start(SIGEV_SIGNAL, SIGRTMIN, CLOCK_MONOTONIC);
    sleep_ms(200);
    return 0;
}

static int delivered(void *unused)
{
    (void)unused;
    catch_signal(SIGRTMIN, handle, SA_RESTART);
    start(SIGEV_SIGNAL, SIGRTMIN, CLOCK_MONOTONIC);
    while (pause() == -1)
        ;
    return 1;
}

static int intervals(void *unused)
{
    (void)unused;
    struct itimerval fast = { { 0, 1 }, { 0, 1 } };
    catch_signal(SIGALRM, handle, SA_RESTART);
    catch_signal(SIGVTALRM, handle, SA_RESTART);
    catch_signal(SIGPROF, handle, SA_RESTART);
    for (int which = 0; which < 3; which++)
        need(setitimer(which, &fast, NULL) == 0);
    while (pause() == -1)
        ;
    return 1;
}

static int descriptors(void *unused)
{
    (void)unused;
    struct itimerspec fast = { .it_interval = { 0, 1000 }, .it_value = { 0, 1000 } };
    struct pollfd all[TIMERS];
    uint64_t count;
    for (int i = 0; i < TIMERS; i++) {
        all[i].fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        all[i].events = POLLIN;
        need(all[i].fd != -1 && timerfd_settime(all[i].fd, 0, &fast, NULL) == 0);
    }
    for (int turn = 0; turn < 20; turn++) {
        need(poll(all, TIMERS, 1000) > 0);
        for (int i = 0; i < TIMERS; i++)
            if (read(all[i].fd, &count, sizeof count) == -1)
                need(errno == EAGAIN);
    }
    return 0;
}

int main(void)
{
    static const struct { const char *name; int (*body)(void *); } parts[] = {
        { "timers that send nothing", silent }, { "one that sends nothing", silent_once },
        { "ignored signals", ignored }, { "blocked signals", blocked },
        { "delivered signals", delivered }, { "intervals", intervals }, { "descriptors", descriptors },
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        pid_t child = spawn(parts[i].body, NULL);
        /* The parent has work of its own meanwhile, and a time to be back. */
        for (int turn = 0; turn < 5; turn++)
            sleep_ms(1);
        show_status(parts[i].name, reap(child));
    }
    section("several at once");
    pid_t crowd[6];
    for (size_t i = 0; i < COUNT_OF(crowd); i++)
        crowd[i] = spawn(i % 3 == 0 ? intervals : i % 3 == 1 ? ignored : delivered, NULL);
    int failed = 0;
    for (size_t i = 0; i < COUNT_OF(crowd); i++)
        failed += reap(crowd[i]) != 0;
    show("failed", failed);
    return 0;
}
