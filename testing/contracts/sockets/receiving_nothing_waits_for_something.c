/*
 * unix(7), recv(2): a receive without room on an empty stream is EAGAIN, or waits, as one with room does: only read(2)
 * of no bytes is 0 at once. When there is something it is 0 and takes none of it, at the end it is 0.
 */
#include "../contract.h"
#include <sys/socket.h>

static int pair[2];

static long receive(int flags)
{
    struct msghdr message = { 0 };
    return recvmsg(pair[0], &message, flags);
}

int main(void)
{
    char byte;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    RESULT(read(pair[0], &byte, 0));
    RESULT(readv(pair[0], NULL, 0));
    RESULT(receive(MSG_DONTWAIT));
    RESULT(recv(pair[0], &byte, 0, MSG_DONTWAIT));
    RESULT(recv(pair[0], NULL, 0, MSG_DONTWAIT | MSG_PEEK));
    need(write(pair[1], "abc", 3) == 3);
    RESULT(receive(0));
    RESULT(recv(pair[0], &byte, 0, MSG_WAITALL));
    RESULT(recv(pair[0], &byte, 1, 0));
    say("byte %c", byte);
    RESULT(recv(pair[0], &byte, 0, MSG_PEEK));
    RESULT(recv(pair[0], &byte, 1, 0));
    RESULT(recv(pair[0], &byte, 1, 0));
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(50);
        need(write(pair[1], "d", 1) == 1);
        _exit(0);
    }
    RESULT(receive(0));
    RESULT(recv(pair[0], &byte, 1, MSG_DONTWAIT));
    reap(child);
    shutdown(pair[1], SHUT_WR);
    RESULT(receive(0));
    RESULT(receive(MSG_DONTWAIT));
    return 0;
}
