/*
 * unix(7): bind makes a socket file, connect needs a listener, accept4 sets its flags, names can be asked on both
 * sides.
 */
#include "../contract.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct sockaddr_un name = { AF_UNIX, "socket" };

static void show_name(const char *what, int (*ask)(int, struct sockaddr *, socklen_t *), int fd)
{
    struct sockaddr_un got = { 0 };
    socklen_t length = sizeof got;
    int result = ask(fd, (void *)&got, &length);
    say("%s: %s length %d path \"%s\"", what, result ? errno_name(errno) : "ok", (int)length, got.sun_path);
}

int main(void)
{
    scratch();
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    RESULT(connect(client, (void *)&name, sizeof name));
    RESULT(bind(server, (void *)&name, sizeof name));
    RESULT(bind(server, (void *)&name, sizeof name));
    RESULT(bind(client, (void *)&name, sizeof name));
    RESULT(connect(client, (void *)&name, sizeof name));
    RESULT(accept(server, NULL, NULL));
    RESULT(listen(server, 2));
    fcntl(server, F_SETFL, O_NONBLOCK);
    RESULT(accept(server, NULL, NULL));
    RESULT(connect(client, (void *)&name, sizeof name));
    RESULT(connect(client, (void *)&name, sizeof name));
    struct pollfd wait = { server, POLLIN, 0 };
    RESULT(poll(&wait, 1, 0));
    struct sockaddr_un peer;
    socklen_t length = sizeof peer;
    int accepted = accept4(server, (void *)&peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    say("accepted %d, nameless peer length %d, close-on-exec %d, nonblocking %d", accepted >= 0, (int)length,
        fcntl(accepted, F_GETFD), !!(fcntl(accepted, F_GETFL) & O_NONBLOCK));
    RESULT(accept4(server, NULL, NULL, 0x10));
    show_name("server's name", getsockname, server);
    show_name("accepted name", getsockname, accepted);
    show_name("client's peer", getpeername, client);
    show_name("client's name", getsockname, client);
    show_name("server's peer", getpeername, server);
    need(write(client, "hi", 2) == 2);
    char text[4] = { 0 };
    RESULT(read(accepted, text, 3));
    close(server);
    int late = socket(AF_UNIX, SOCK_STREAM, 0);
    RESULT(connect(late, (void *)&name, sizeof name));
    RESULT(access("socket", F_OK));
    return 0;
}
