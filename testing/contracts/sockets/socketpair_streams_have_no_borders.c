/* unix(7): a stream pair carries bytes both ways without message borders and reports the end when the peer closes. */
#include "../contract.h"
#include <sys/socket.h>

int main(void)
{
    int pair[2];
    char text[32] = { 0 };
    RESULT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    RESULT(fcntl(pair[0], F_GETFD));
    need(write(pair[0], "one", 3) == 3 && write(pair[0], "two", 3) == 3);
    RESULT(read(pair[1], text, 4));
    RESULT(read(pair[1], text + 4, 27));
    show_text("text", text);
    RESULT(send(pair[1], "back", 4, 0));
    memset(text, 0, sizeof text);
    RESULT(recv(pair[0], text, 2, MSG_PEEK));
    RESULT(recv(pair[0], text, 31, 0));
    show_text("text", text);
    RESULT(recv(pair[0], text, 31, MSG_DONTWAIT));
    need(write(pair[1], "last", 4) == 4);
    close(pair[1]);
    RESULT(read(pair[0], text, 31));
    RESULT(read(pair[0], text, 31));
    RESULT(send(pair[0], "x", 1, MSG_NOSIGNAL));
    RESULT(lseek(pair[0], 0, SEEK_SET));
    RESULT(socketpair(AF_UNIX, 77, 0, pair));
    RESULT(socketpair(AF_INET, SOCK_STREAM, 0, pair));
    RESULT(socketpair(AF_UNIX, SOCK_STREAM, 9, pair));
    return 0;
}
