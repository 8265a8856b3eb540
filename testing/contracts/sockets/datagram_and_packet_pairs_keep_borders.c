/*
 * unix(7): datagrams arrive whole and in order; a short buffer cuts and sets MSG_TRUNC; seqpacket ends, dgram does
 * not.
 */
#include "../contract.h"
#include <sys/socket.h>

static void run(const char *title, int type)
{
    int pair[2];
    char text[16] = { 0 };
    section(title);
    need(socketpair(AF_UNIX, type, 0, pair) == 0);
    RESULT(write(pair[0], "first", 5));
    RESULT(write(pair[0], "", 0));
    RESULT(write(pair[0], "second one", 10));
    RESULT(write(pair[0], "third", 5));
    RESULT(read(pair[1], text, 15));
    RESULT(read(pair[1], text, 15));
    struct iovec vector = { text, 6 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
    RESULT(recvmsg(pair[1], &message, 0));
    say("cut %d end of record %d", !!(message.msg_flags & MSG_TRUNC), !!(message.msg_flags & MSG_EOR));
    RESULT(recv(pair[1], text, 2, MSG_TRUNC | MSG_PEEK));
    RESULT(recv(pair[1], text, 15, MSG_DONTWAIT));
    RESULT(recv(pair[1], text, 15, MSG_DONTWAIT));
    close(pair[0]);
    RESULT(recv(pair[1], text, 15, MSG_DONTWAIT));
    RESULT(send(pair[1], "x", 1, MSG_NOSIGNAL));
}

int main(void)
{
    run("dgram", SOCK_DGRAM);
    run("seqpacket", SOCK_SEQPACKET);
    return 0;
}
