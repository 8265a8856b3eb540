/*
 * shutdown(2): SHUT_WR gives the peer an end of file, SHUT_RD gives the reader one, and the other direction goes
 * on.
 */
#include "../contract.h"
#include <sys/socket.h>

int main(void)
{
    int pair[2];
    char text[8];
    signal(SIGPIPE, SIG_IGN);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    need(write(pair[0], "abc", 3) == 3);
    RESULT(shutdown(pair[0], SHUT_WR));
    RESULT(read(pair[1], text, 8));
    RESULT(read(pair[1], text, 8));
    RESULT(write(pair[0], "x", 1));
    RESULT(write(pair[1], "back", 4));
    RESULT(read(pair[0], text, 8));
    RESULT(shutdown(pair[0], SHUT_RD));
    RESULT(read(pair[0], text, 8));
    RESULT(write(pair[1], "x", 1));
    RESULT(shutdown(pair[0], SHUT_RDWR));
    RESULT(shutdown(pair[0], 9));
    RESULT(shutdown(1, SHUT_RD));
    RESULT(shutdown(-1, SHUT_RD));
    int lone = socket(AF_UNIX, SOCK_STREAM, 0);
    RESULT(shutdown(lone, SHUT_RD));
    return 0;
}
