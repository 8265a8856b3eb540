/*
 * connect(2), unix(7): only datagram sockets dissolve their association by AF_UNSPEC: a stream stays connected, so its
 * peer sees the end.
 */
#include "security.h"
#include <sys/socket.h>
#include <sys/un.h>

static void attack(int kind)
{
    int pair[2];
    char byte;
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    struct sockaddr_un name = { AF_UNIX, "listener" };
    need(socketpair(AF_UNIX, kind | SOCK_NONBLOCK, 0, pair) == 0);
    OUTCOME(connect(pair[0], &none, sizeof none));
    RESULT(write(pair[0], "x", 1));
    RESULT(write(pair[1], "x", 1));
    RESULT(bind(pair[0], (void *)&name, sizeof name));
    OUTCOME(listen(pair[0], 1));
    unlink("listener");
    RESULT(read(pair[1], &byte, 1));
    close(pair[0]);
    struct pollfd wish = { .fd = pair[1], .events = POLLIN };
    RESULT(poll(&wish, 1, 0));
    say("hung up: %d", !!(wish.revents & POLLHUP));
    OUTCOME(read(pair[1], &byte, 1));
    close(pair[1]);
}

int main(void)
{
    scratch();
    signal(SIGPIPE, SIG_IGN);
    section("stream");
    attack(SOCK_STREAM);
    section("packets");
    attack(SOCK_SEQPACKET);
    return 0;
}
