/*
 * contract: timeout=30
 * close(2), dup2(2), execve(2), _exit(2): a call that waits on a descriptor works on the open file it began with.
 * Another thread that closes or replaces the number neither ends the wait nor leads it to the new file, and at the
 * end of the process nothing of it is left.
 */
#include "security.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>

static int number, feed;
static volatile int entered;

static void *reads(void *unused)
{
    char text[8] = "";
    (void)unused;
    entered = 1;
    ssize_t got = read(number, text, sizeof text - 1);
    say("the reader got %zd \"%s\"", got, got > 0 ? text : errno_name(errno));
    return NULL;
}

static void *polls(void *unused)
{
    struct pollfd wish = { number, POLLIN, 0 };
    entered = 1;
    int got = poll(&wish, 1, 2000);
    say("the poller got %d, events %x", got, wish.revents);
    return unused;
}

static void *accepts(void *unused)
{
    entered = 1;
    int got = accept(number, NULL, NULL);
    say("the acceptor got %s", got == -1 ? errno_name(errno) : "a connection");
    return unused;
}

static void replaced(void *(*body)(void *), const char *name, int how)
{
    int pipes[2], others[2];
    pthread_t thread;
    section(name);
    need(pipe(pipes) == 0 && pipe(others) == 0 && write(others[1], "secret", 6) == 6);
    number = pipes[0], feed = pipes[1], entered = 0;
    int kept = how == 2 ? -1 : dup(number);
    need(pthread_create(&thread, NULL, body, NULL) == 0);
    while (!entered)
        sched_yield();
    sleep_ms(50);
    if (how == 0)
        need(close(number) == 0);
    else
        need(dup2(others[0], number) == number);
    need(write(feed, "right", 5) == 5);
    pthread_join(thread, NULL);
    close(kept), close(feed), close(others[0]), close(others[1]);
    if (how)
        close(number);
}

static void listener(void)
{
    pthread_t thread;
    section("accept, shut down");
    number = socket(AF_UNIX, SOCK_STREAM, 0), entered = 0;
    need(bind(number, (void *)&(struct { sa_family_t family; char name[9]; }){ AF_UNIX, "\0blocked" }, 10) == 0);
    need(listen(number, 1) == 0 && pthread_create(&thread, NULL, accepts, NULL) == 0);
    while (!entered)
        sched_yield();
    sleep_ms(50);
    need(shutdown(number, SHUT_RD) == 0);
    pthread_join(thread, NULL);
    close(number);
}

static int ends_while_blocked(void *how)
{
    pthread_t thread;
    int pipes[2];
    need(pipe(pipes) == 0);
    number = pipes[0], entered = 0;
    need(pthread_create(&thread, NULL, how == (void *)2 ? polls : reads, NULL) == 0);
    while (!entered)
        sched_yield();
    sleep_ms(20);
    if (how) {
        execl("/bin/true", "true", NULL);
        return 99;
    }
    _exit(3);
}

static int churns(void *unused)
{
    int epoll = epoll_create1(0);
    (void)unused;
    number = eventfd(0, EFD_NONBLOCK);
    for (int round = 0; round < 2000; round++) {
        struct epoll_event event = { .events = EPOLLIN };
        int fd = dup(number);
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        if (fork() == 0) {
            dup2(epoll, fd);
            _exit(0);
        }
        dup2(0, fd);
        close(fd);
        epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &event);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (round % 20 == 19)
            while (waitpid(-1, NULL, 0) > 0)
                ;
        if (round >= 400)
            break;
    }
    return 0;
}

static int attempt(void *unused)
{
    (void)unused;
    replaced(reads, "read, closed", 0);
    replaced(reads, "read, replaced", 1);
    replaced(reads, "read, replaced, the last reference", 2);
    replaced(polls, "poll, replaced", 1);
    listener();
    section("the process ends");
    show_status("exits", in_child(ends_while_blocked, NULL));
    show_status("executes", in_child(ends_while_blocked, (void *)1));
    show_status("executes", in_child(ends_while_blocked, (void *)2));
    show_status("churns", in_child(churns, NULL));
    return 0;
}

int main(void)
{
    as_nobody(attempt, NULL);
    return 0;
}
