/* Pipes, sockets, readiness. */
#include "bench.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void run_pipe(unsigned long iterations, Span *span) {
    static char buffer[4096];
    int ends[2];
    need(pipe(ends), "pipe");
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        if (write(ends[1], buffer, sizeof buffer) != sizeof buffer) bench_fail("pipe write");
        if (read(ends[0], buffer, sizeof buffer) != sizeof buffer) bench_fail("pipe read");
    }
    span_close(span);
    close(ends[0]);
    close(ends[1]);
}

static void echo_bytes(int from, int to) {
    char byte;
    while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1) continue;
    _exit(0);
}

static void run_pipe_pingpong(unsigned long iterations, Span *span) {
    int there[2], back[2];
    char byte = 'x';
    need(pipe(there), "pipe");
    need(pipe(back), "pipe");
    pid_t child = fork();
    need(child, "fork");
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        echo_bytes(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) bench_fail("ping pong");
    }
    span_close(span);
    close(there[1]);
    close(back[0]);
    waitpid(child, 0, 0);
}

static void run_epoll_wait(unsigned long iterations, Span *span) {
    int set = (int)need(epoll_create1(0), "epoll_create1"), counter = (int)need(eventfd(0, EFD_NONBLOCK), "eventfd");
    struct epoll_event event = {.events = EPOLLIN};
    need(epoll_ctl(set, EPOLL_CTL_ADD, counter, &event), "epoll_ctl");
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) epoll_wait(set, &event, 1, 0);
    span_close(span);
    close(counter);
    close(set);
}

static void run_poll(unsigned long iterations, Span *span) {
    int counter = (int)need(eventfd(0, EFD_NONBLOCK), "eventfd");
    struct pollfd one = {counter, POLLIN, 0};
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) poll(&one, 1, 0);
    span_close(span);
    close(counter);
}

static void run_eventfd(unsigned long iterations, Span *span) {
    int counter = (int)need(eventfd(0, EFD_NONBLOCK), "eventfd");
    uint64_t value = 1;
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        if (write(counter, &value, sizeof value) != sizeof value) bench_fail("eventfd write");
        if (read(counter, &value, sizeof value) != sizeof value) bench_fail("eventfd read");
    }
    span_close(span);
    close(counter);
}

static void run_socketpair(unsigned long iterations, Span *span) {
    int ends[2];
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
        close(ends[0]);
        close(ends[1]);
    }
    span_close(span);
}

const Bench bench_events[] = {
    {"pipe", 256, run_pipe},
    {"pipe_pingpong", 50000, run_pipe_pingpong},
    {"epoll_wait", 500000, run_epoll_wait},
    {"poll", 500000, run_poll},
    {"eventfd", 500000, run_eventfd},
    {"socketpair", 200000, run_socketpair},
    {0, 0, 0},
};
