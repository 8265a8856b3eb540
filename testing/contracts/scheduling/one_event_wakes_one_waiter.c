/* pipe(7), accept(2), unix(7), tty_ioctl(4), mq_receive(3), epoll(7) with EPOLLET: threads that wait for the same thing
 * wait exclusively. An event that one of them can take wakes one; the others sleep on, which their counts of voluntary
 * switches show (proc(5)), and are served by later events. Readers of a terminal take turns: the next one takes its
 * turn when the first is served, and sleeps on. */
#include "../contract.h"
#include <mqueue.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

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

static int most_in_vain;

static void start_waiters(int (*taker)(void))
{
    take = taker;
    memset(waiters, 0, sizeof waiters);
    for (int i = 0; i < WAITERS; i++) {
        need(pthread_create(&waiters[i].thread, NULL, wait_for_one, &waiters[i]) == 0);
        while (waiters[i].tid == 0 || status_of(waiters[i].tid, "State:") != 'S')
            sleep_ms(1);
    }
    sleep_ms(20);
}

/* Those that gave way to another thread since `before` and still wait. */
static int count_in_vain(const long *before)
{
    int in_vain = 0;
    for (int i = 0; i < WAITERS; i++)
        in_vain += !waiters[i].done && status_of(waiters[i].tid, "\nvoluntary_ctxt_switches:") != before[i];
    return in_vain;
}

static void count_switches(long *into)
{
    for (int i = 0; i < WAITERS; i++)
        into[i] = status_of(waiters[i].tid, "\nvoluntary_ctxt_switches:");
}

static void one_at_a_time(const char *title, int (*taker)(void), void (*event)(void))
{
    section(title);
    start_waiters(taker);
    long before[WAITERS];
    count_switches(before);
    event();
    while (count_done() == 0)
        sleep_ms(1);
    sleep_ms(20);
    int in_vain = count_in_vain(before);
    show("served by the first event", count_done());
    if (most_in_vain == 0)
        show("woken in vain", in_vain);
    else
        check(in_vain <= most_in_vain, "at most the next one ran");
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

/* A backlog of 0 holds one connection; each thread waits to connect, and an accept makes room for one. */
static int connect_one(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
}

static void accept_one(void) { need(take_connection() == 0); }

static int receive_packet(void) { char byte; return recv(source, &byte, 1, 0) == 1 ? 0 : -1; }
static void send_packet(void) { need(send(feed, "x", 1, 0) == 1); }

static int packet_sender(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    need(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Each thread has a socket of its own: only the receiver's queue is full. */
static int send_one_packet(void) { return send(packet_sender(), "x", 1, 0) == 1 ? 0 : -1; }
static void receive_one_packet(void) { need(receive_packet() == 0); }

static int put_page(void)
{
    char page[4096] = { 0 };
    return write(feed, page, sizeof page) == sizeof page ? 0 : -1;
}

static void take_page(void)
{
    char page[4096];
    need(read(source, page, sizeof page) == sizeof page);
}

static int take_line(void) { char line[16]; return read(source, line, sizeof line) == 2 ? 0 : -1; }
static void type_line(void) { need(write(feed, "x\n", 2) == 2); }

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

static void sockets(void)
{
    int ends[2];
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, "socket");
    source = socket(AF_UNIX, SOCK_STREAM, 0);
    need(source >= 0 && bind(source, (struct sockaddr *)&address, sizeof address) == 0 && listen(source, 8) == 0);
    one_at_a_time("a connection", take_connection, connect_once);
    need(listen(source, 0) == 0 && connect_one() == 0);
    one_at_a_time("room for a connection", connect_one, accept_one);

    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    source = ends[0], feed = ends[1];
    one_at_a_time("a datagram", receive_packet, send_packet);
    need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    source = ends[0], feed = ends[1];
    one_at_a_time("a packet", receive_packet, send_packet);

    strcpy(address.sun_path, "datagrams");
    source = socket(AF_UNIX, SOCK_DGRAM, 0);
    need(source >= 0 && bind(source, (struct sockaddr *)&address, sizeof address) == 0);
    int filler = packet_sender();
    while (send(filler, "x", 1, MSG_DONTWAIT) == 1)
        continue;
    need(errno == EAGAIN);
    one_at_a_time("room for a datagram", send_one_packet, receive_one_packet);
}

static void terminal(void)
{
    feed = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(feed >= 0 && unlockpt(feed) == 0);
    source = open(ptsname(feed), O_RDWR | O_NOCTTY);
    need(source >= 0);
    most_in_vain = 1;
    one_at_a_time("a line of a terminal", take_line, type_line);
    most_in_vain = 0;
}

int main(void)
{
    int ends[2];
    scratch();
    need(pipe(ends) == 0);
    source = ends[0], feed = ends[1];
    one_at_a_time("a byte in a pipe", take_byte, put_byte);
    one_at_a_time("several bytes in a pipe", take_byte, put_rest);

    need(fcntl(feed, F_SETPIPE_SZ, 4096) == 4096 && put_page() == 0);
    one_at_a_time("room in a pipe", put_page, take_page);
    sockets();
    terminal();

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
    start_waiters(take_event);
    long before[WAITERS];
    count_switches(before);
    for (int i = 1; i <= WAITERS; i++) {
        raise_event();
        while (count_done() < i)
            sleep_ms(1);
        if (i == 1) {
            sleep_ms(20);
            show("woken in vain", count_in_vain(before));
        }
    }
    for (int i = 0; i < WAITERS; i++)
        need(pthread_join(waiters[i].thread, NULL) == 0);
    show("served by as many edges", count_done());
    return 0;
}
