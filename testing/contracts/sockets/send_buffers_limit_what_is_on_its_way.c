/*
 * socket(7), unix(7): SO_SNDBUF of the sender bounds the bytes sent and not yet received; SO_RCVBUF of a local receiver
 * bounds nothing. Values are doubled, have a least and, without CAP_NET_ADMIN, a largest. A datagram receiver takes
 * eleven packets from strangers.
 */
#include "../contract.h"
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

static void set(int fd, int option, int value) { need(setsockopt(fd, SOL_SOCKET, option, &value, sizeof value) == 0); }

static int get(int fd, int option)
{
    int value = 0;
    socklen_t length = sizeof value;
    need(getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0);
    return value;
}

static void values(const char *who)
{
    static const int wanted[] = { 0, 1, 1000, 2304, 2305, 5000, 212991, 212992, 212993, 1 << 30, -1 };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), large = 300000;
    section(who);
    say("default %d %d", get(fd, SO_SNDBUF), get(fd, SO_RCVBUF));
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        set(fd, SO_SNDBUF, wanted[i]);
        set(fd, SO_RCVBUF, wanted[i]);
        say("%d gives %d %d", wanted[i], get(fd, SO_SNDBUF), get(fd, SO_RCVBUF));
    }
    RESULT(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &large, sizeof large));
    RESULT(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large));
    say("now %d %d", get(fd, SO_SNDBUF), get(fd, SO_RCVBUF));
    close(fd);
}

static int user(void *unused)
{
    (void)unused;
    need(setresuid(65533, 65533, 65533) == 0);
    values("without privilege");
    return 0;
}

static long fill(int fd, size_t size)
{
    static char block[1 << 16];
    long sum = 0, sent;
    while ((sent = send(fd, block, size, MSG_DONTWAIT)) > 0)
        sum += sent;
    say("stopped by %s", errno_name(errno));
    return sum;
}

static void pair_of(int type, int *pair, int send_buffer, int receive_buffer)
{
    need(socketpair(AF_UNIX, type, 0, pair) == 0);
    if (send_buffer)
        set(pair[0], SO_SNDBUF, send_buffer);
    if (receive_buffer)
        set(pair[1], SO_RCVBUF, receive_buffer), set(pair[1], SO_SNDBUF, receive_buffer);
}

static void streams(void)
{
    int pair[2];
    section("stream");
    pair_of(SOCK_STREAM, pair, 0, 0);
    long usual = fill(pair[0], 4096);
    check(usual > 65536 && usual <= 212992 + 4096, "the usual buffer holds more than 64 KiB and no more than its size");
    pair_of(SOCK_STREAM, pair, 0, 1);
    check(fill(pair[0], 4096) == usual, "the receiver's buffers do not matter");
    pair_of(SOCK_STREAM, pair, 1, 0);
    long small = fill(pair[0], 4096);
    check(small >= 2048 && small <= 8192, "the least buffer holds a few KiB");
    check(fill(pair[1], 4096) == usual, "the other direction has its own");
    set(pair[0], SO_SNDBUF, 100000);
    check(fill(pair[0], 4096) > 32768, "a larger buffer takes more");
}

static int ready(int fd)
{
    struct pollfd one = { fd, POLLOUT, 0 };
    poll(&one, 1, 0);
    return one.revents;
}

static void packets(const char *title, int type)
{
    int pair[2];
    static char block[1 << 18];
    section(title);
    pair_of(type, pair, 0, 0);
    show("packets of a byte", fill(pair[0], 1));
    pair_of(type, pair, 0, 1);
    show("packets of a byte to a small receiver", fill(pair[0], 1));
    pair_of(type, pair, 0, 0);
    show("packets of a KiB", fill(pair[0], 1024) / 1024);
    pair_of(type, pair, 1, 0);
    for (int i = 0; i < 4; i++) {
        int before = ready(pair[0]);
        say("poll %d, send %ld", before, (long)send(pair[0], "x", 1, MSG_DONTWAIT));
    }
    show("more packets of a byte from a small sender", fill(pair[0], 1));
    show("poll", ready(pair[0]));
    need(recv(pair[1], block, 9, MSG_DONTWAIT) == 1);
    show("after one was taken", fill(pair[0], 1));
    for (int i = 0; i < 5; i++)
        need(recv(pair[1], block, 9, MSG_DONTWAIT) == 1);
    show("poll with one left", ready(pair[0]));
    pair_of(type, pair, 20000, 0);
    RESULT(send(pair[0], block, 40000 - 32, MSG_DONTWAIT));
    pair_of(type, pair, 20000, 0);
    RESULT(send(pair[0], block, 40000 - 31, MSG_DONTWAIT));
}

static int bound(const char *name)
{
    struct sockaddr_un address = { AF_UNIX, "" };
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    strcpy(address.sun_path, name);
    need(fd != -1 && bind(fd, (void *)&address, sizeof address) == 0);
    return fd;
}

static int throw_at(int fd, const char *name)
{
    struct sockaddr_un address = { AF_UNIX, "" };
    int count = 0;
    strcpy(address.sun_path, name);
    while (count < 1000 && sendto(fd, "x", 1, MSG_DONTWAIT, (void *)&address, sizeof address) == 1)
        count++;
    return count;
}

static void strangers(void)
{
    char byte;
    section("strangers");
    scratch();
    int one = bound("one"), two = bound("two"), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    int first = throw_at(sender, "one");
    say("to one %d, to the other %d", first, throw_at(sender, "two"));
    for (int i = 0; i < 11; i++)
        need(recv(one, &byte, 1, MSG_DONTWAIT) == 1 && recv(two, &byte, 1, MSG_DONTWAIT) == 1);
    set(sender, SO_SNDBUF, 1);
    first = throw_at(sender, "one");
    say("from a small sender to one %d, to the other %d", first, throw_at(sender, "two"));
    need(recv(one, &byte, 1, MSG_DONTWAIT) == 1);
    show("after the first took one, to the other", throw_at(sender, "two"));
    close(one);
    show("after the first closed, to the other", throw_at(sender, "two"));
    int other = socket(AF_UNIX, SOCK_DGRAM, 0);
    say("another sender %d", throw_at(other, "two"));
    struct sockaddr_un address = { AF_UNIX, "two" };
    need(connect(other, (void *)&address, sizeof address) == 0);
    show("poll of a sender whose receiver is full", ready(other));
}

/* A blocked sender goes on when a packet is taken. */
static int slow_reader(void *fd)
{
    char byte;
    for (int i = 0; i < 40; i++) {
        if (i % 8 == 0)
            sleep_ms(10);
        if (recv(*(int *)fd, &byte, 1, 0) != 1)
            return 1;
    }
    return 0;
}

static void blocked(int type)
{
    int pair[2];
    pair_of(type, pair, 1, 0);
    pid_t child = spawn(slow_reader, &pair[1]);
    int sent = 0;
    for (int i = 0; i < 40; i++)
        sent += send(pair[0], "x", 1, 0) == 1;
    show("sent", sent);
    show_status("reader", reap(child));
}

int main(void)
{
    values("as root");
    show_status("user", in_child(user, NULL));
    streams();
    packets("datagrams", SOCK_DGRAM);
    packets("packets in order", SOCK_SEQPACKET);
    strangers();
    section("blocking");
    blocked(SOCK_DGRAM);
    blocked(SOCK_SEQPACKET);
    return 0;
}
