/* tcp(7): closing with unread data or a zero linger sends a reset: the peer's read is ECONNRESET, its write EPIPE. */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static void connected(int *pair)
{
    struct sockaddr_in address = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    need(bind(server, (void *)&address, sizeof address) == 0 && listen(server, 1) == 0);
    need(getsockname(server, (void *)&address, &length) == 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    need(connect(pair[0], (void *)&address, sizeof address) == 0);
    need((pair[1] = accept(server, NULL, NULL)) != -1);
    close(server);
}

int main(void)
{
    int pair[2], error = -1;
    char text[8];
    socklen_t length = sizeof error;
    signal(SIGPIPE, SIG_IGN);
    section("unread data");
    connected(pair);
    need(write(pair[0], "unread", 6) == 6);
    struct pollfd wait = { pair[1], POLLIN, 0 };
    RESULT(poll(&wait, 1, 2000));
    close(pair[1]);
    wait.fd = pair[0];
    RESULT(poll(&wait, 1, 2000));
    say("hung up %d in error %d", !!(wait.revents & POLLHUP), !!(wait.revents & POLLERR));
    RESULT(read(pair[0], text, 8));
    RESULT(read(pair[0], text, 8));
    RESULT(write(pair[0], "x", 1));
    section("zero linger");
    connected(pair);
    struct linger none = { 1, 0 };
    RESULT(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &none, sizeof none));
    close(pair[1]);
    wait.fd = pair[0];
    RESULT(poll(&wait, 1, 2000));
    RESULT(getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &error, &length));
    show_text("SO_ERROR", errno_name(error));
    section("orderly");
    connected(pair);
    close(pair[1]);
    wait.fd = pair[0];
    RESULT(poll(&wait, 1, 2000));
    RESULT(read(pair[0], text, 8));
    RESULT(getpeername(pair[0], (void *)text, &length));
    return 0;
}
