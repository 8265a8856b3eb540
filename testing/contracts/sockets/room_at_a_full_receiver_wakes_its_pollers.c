/* unix(7), poll(2), epoll(7): a datagram socket whose peer has as many packets waiting as it takes from strangers is
 * not ready for writing. A poller of it is told when the peer takes one, when the peer is closed, and when the socket
 * gets another peer or none. */
#include "../contract.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MOST = 4000 };

static struct sockaddr_un name_of(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
    return address;
}

static int receiver(const char *name)
{
    struct sockaddr_un address = name_of(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    unlink(name);
    need(fd >= 0 && bind(fd, (void *)&address, sizeof address) == 0);
    return fd;
}

static int sender(const char *name)
{
    struct sockaddr_un address = name_of(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    need(fd >= 0 && connect(fd, (void *)&address, sizeof address) == 0);
    return fd;
}

static int fill(int fd)
{
    int sent = 0;
    while (send(fd, "x", 1, 0) == 1)
        sent++;
    return sent;
}

static int is_writable(int fd)
{
    struct pollfd poller = { .fd = fd, .events = POLLOUT };
    return poll(&poller, 1, 0) == 1 ? poller.revents : 0;
}

static int peer, polled;
static void receive_one(void) { char byte; need(recv(peer, &byte, 1, 0) == 1); }
static void close_peer(void) { need(close(peer) == 0); }
static void change_peer(void)
{
    struct sockaddr_un address = name_of("other");
    need(connect(polled, (void *)&address, sizeof address) == 0);
}
static void leave_peer(void)
{
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    need(connect(polled, &none, sizeof none) == 0);
}

static void *later(void *what)
{
    sleep_ms(100);
    ((void (*)(void))what)();
    return NULL;
}

static void expect(const char *what, void (*event)(void), int edge)
{
    section(what);
    peer = receiver("full");
    int other = receiver("other"), stranger = sender("full");
    polled = sender("full");
    show("packets of a stranger", fill(stranger));
    show("ready", is_writable(polled));
    pthread_t thread;
    int set = epoll_create1(0);
    struct epoll_event watched = { .events = EPOLLOUT | (edge ? (unsigned)EPOLLET : 0) }, found = { 0 };
    if (edge) {
        need(epoll_ctl(set, EPOLL_CTL_ADD, polled, &watched) == 0);
        show("ready before", epoll_wait(set, &found, 1, 0));
    }
    long long begin = elapsed_ms();
    need(pthread_create(&thread, NULL, later, (void *)event) == 0);
    if (edge) {
        show("told by epoll", epoll_wait(set, &found, 1, MOST));
        show("of room", found.events);
    } else {
        struct pollfd poller = { .fd = polled, .events = POLLOUT };
        show("told by poll", poll(&poller, 1, MOST));
        show("of room", poller.revents);
    }
    check(elapsed_ms() - begin < MOST / 2, "it was told at once");
    need(pthread_join(thread, NULL) == 0);
    show("ready", is_writable(polled));
    close(set);
    close(stranger);
    close(polled);
    close(other);
    if (event != close_peer)
        close(peer);
}

int main(void)
{
    scratch();
    for (int edge = 0; edge < 2; edge++) {
        expect("a packet is taken", receive_one, edge);
        expect("the receiver is closed", close_peer, edge);
        expect("another peer", change_peer, edge);
        expect("no peer", leave_peer, edge);
    }
    return 0;
}
