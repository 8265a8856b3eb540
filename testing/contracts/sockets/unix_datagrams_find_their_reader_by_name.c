/* unix(7): datagrams go to a bound name and carry the sender's; an unbound receiver or a wrong kind is refused. */
#include "../contract.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
    scratch();
    struct sockaddr_un one = { AF_UNIX, "one" }, two = { AF_UNIX, "two" }, from;
    int a = socket(AF_UNIX, SOCK_DGRAM, 0), b = socket(AF_UNIX, SOCK_DGRAM, 0),
        stream = socket(AF_UNIX, SOCK_STREAM, 0);
    RESULT(sendto(a, "x", 1, 0, (void *)&two, sizeof two));
    RESULT(bind(a, (void *)&one, sizeof one));
    RESULT(bind(b, (void *)&two, sizeof two));
    RESULT(sendto(a, "hello", 5, 0, (void *)&two, sizeof two));
    char text[16] = { 0 };
    socklen_t length = sizeof from;
    RESULT(recvfrom(b, text, 15, 0, (void *)&from, &length));
    say("\"%s\" from \"%s\" length %d", text, from.sun_path, (int)length);
    RESULT(send(a, "x", 1, 0));
    RESULT(connect(a, (void *)&two, sizeof two));
    RESULT(send(a, "again", 5, 0));
    RESULT(recv(b, text, 15, 0));
    RESULT(connect(stream, (void *)&two, sizeof two));
    RESULT(listen(b, 1));
    struct sockaddr_un hidden = { AF_UNIX, "\0abstract name" };
    socklen_t short_length = offsetof(struct sockaddr_un, sun_path) + 14;
    int c = socket(AF_UNIX, SOCK_DGRAM, 0), d = socket(AF_UNIX, SOCK_DGRAM, 0);
    RESULT(bind(c, (void *)&hidden, short_length));
    RESULT(bind(d, (void *)&hidden, short_length));
    RESULT(sendto(d, "to nowhere visible", 18, 0, (void *)&hidden, short_length));
    RESULT(recv(c, text, 15, MSG_TRUNC));
    close(c);
    RESULT(sendto(d, "x", 1, 0, (void *)&hidden, short_length));
    close(b);
    RESULT(send(a, "x", 1, 0));
    return 0;
}
