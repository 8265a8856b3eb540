/* pipe(7), accept(2), mq_receive(3), epoll(7) with EPOLLET: threads that wait for the same thing wait exclusively. An event that one
 * of them can take wakes one; the others sleep on, which their counts of voluntary switches show (proc(5)), and are served by
 * later events. */
#include "../contract.h"
#include <mqueue.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { WAITERS = 5 };

struct waiter {
    pthread_t thread;
    volatile pid_t tid;
    volatile int done;
};

static int source;
static int (*take)(void);
static struct waiter waiters[WAITERS];

static void *wait_for_one(void *argument)
{
    struct waiter *me = argument;
    me->tid = (pid_t)syscall(SYS_gettid);
    need(take() == 0);
    me->done = 1;
    return NULL;
}

/* A field of /proc/self/task/TID/status: the number behind `name`, or the letter of "State:". */
static long status_of(pid_t tid, const char *name)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    need(get_file(path, text, sizeof text) > 0);
    const char *found = strstr(text, name);
    need(found != NULL);
    found += strlen(name) + 1;
    return *found >= 'A' ? *found : strtol(found, NULL, 10);
}

static int count_done(void)
{
    int done = 0;
    for (int i = 0; i < WAITERS; i++)
        done += waiters[i].done;
    return done;
}

static void one_at_a_time(const char *title, int (*taker)(void), void (*event)(void))
{
    section(title);
    take = taker;
    memset(waiters, 0, sizeof waiters);
    for (int i = 0; i < WAITERS; i++) {
        need(pthread_create(&waiters[i].thread, NULL, wait_for_one, &waiters[i]) == 0);
        while (waiters[i].tid == 0 || status_of(waiters[i].tid, "State:") != 'S')
            sleep_ms(1);
    }
    sleep_ms(20);
    long before[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        before[i] = status_of(waiters[i].tid, "\nvoluntary_ctxt_switches:");
    event();
    while (count_done() == 0)
        sleep_ms(1);
    sleep_ms(20);
    int in_vain = 0;
    for (int i = 0; i < WAITERS; i++)
        in_vain += !waiters[i].done && status_of(waiters[i].tid, "\nvoluntary_ctxt_switches:") != before[i];
    show("served by the first event", count_done());
    show("woken in vain", in_vain);
    for (int i = 1; i < WAITERS; i++)
        event();
    for (int i = 0; i < WAITERS; i++)
        need(pthread_join(waiters[i].thread, NULL) == 0);
    show("served by all events", count_done());
}

static int feed;

static int take_byte(void) { char byte; return read(source, &byte, 1) == 1 ? 0 : -1; }
static void put_byte(void) { need(write(feed, "x", 1) == 1); }
static void put_rest(void)
{
    static int calls;
    /* The last event brings what is left at once: each reader passes on what it leaves. */
    if (calls++ == 0)
        need(write(feed, "x", 1) == 1);
    else if (calls == 2)
        need(write(feed, "xxxx", 4) == 4);
}

static struct sockaddr_un address;

static int take_connection(void)
{
    int fd = accept(source, NULL, NULL);
    return fd < 0 ? -1 : close(fd);
}

static void connect_once(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    need(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    need(close(fd) == 0);
}

static int take_message(void)
{
    char message[16];
    return mq_receive((mqd_t)source, message, sizeof message, NULL) == 1 ? 0 : -1;
}

static void send_message(void) { need(mq_send((mqd_t)source, "x", 1, 0) == 0); }

static int take_event(void)
{
    struct epoll_event event;
    return epoll_wait(source, &event, 1, -1) == 1 ? 0 : -1;
}

static void raise_event(void)
{
    uint64_t one = 1;
    need(write(feed, &one, sizeof one) == sizeof one);
}

int main(void)
{
    int ends[2];
    scratch();
    need(pipe(ends) == 0);
    source = ends[0], feed = ends[1];
    one_at_a_time("a byte in a pipe", take_byte, put_byte);
    one_at_a_time("several bytes in a pipe", take_byte, put_rest);

    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, "socket");
    source = socket(AF_UNIX, SOCK_STREAM, 0);
    need(source >= 0 && bind(source, (struct sockaddr *)&address, sizeof address) == 0 && listen(source, 8) == 0);
    one_at_a_time("a connection", take_connection, connect_once);

    struct mq_attr shape = { .mq_maxmsg = 8, .mq_msgsize = 16 };
    source = (int)mq_open("/one_event", O_RDWR | O_CREAT | O_EXCL, 0600, &shape);
    need(source >= 0 && mq_unlink("/one_event") == 0);
    one_at_a_time("a message", take_message, send_message);

    struct epoll_event interest = { .events = EPOLLIN | EPOLLET };
    feed = eventfd(0, 0);
    source = epoll_create1(0);
    need(feed >= 0 && source >= 0 && epoll_ctl(source, EPOLL_CTL_ADD, feed, &interest) == 0);
    /* Events that come before a waiter has taken the last one are one event: so each waits for its own. */
    section("an edge");
    take = take_event;
    memset(waiters, 0, sizeof waiters);
    for (int i = 0; i < WAITERS; i++) {
        need(pthread_create(&waiters[i].thread, NULL, wait_for_one, &waiters[i]) == 0);
        while (waiters[i].tid == 0 || status_of(waiters[i].tid, "State:") != 'S')
            sleep_ms(1);
    }
    sleep_ms(20);
    for (int i = 1; i <= WAITERS; i++) {
        raise_event();
        while (count_done() < i)
            sleep_ms(1);
    }
    for (int i = 0; i < WAITERS; i++)
        need(pthread_join(waiters[i].thread, NULL) == 0);
    show("served by as many edges", count_done());
    return 0;
}
