/* connect(2): a nonblocking TCP connect is EINPROGRESS or done; writability ends it and SO_ERROR tells how. */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static void attempt(const char *title, struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = -1;
    socklen_t length = sizeof error;
    section(title);
    int result = connect(fd, (void *)address, sizeof *address);
    say("started %d", result == 0 || errno == EINPROGRESS || errno == ECONNREFUSED);
    struct pollfd wait = { fd, POLLOUT, 0 };
    RESULT(poll(&wait, 1, 3000));
    say("writable %d in error %d", !!(wait.revents & POLLOUT), !!(wait.revents & POLLERR));
    RESULT(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    show_text("SO_ERROR", errno_name(error));
    RESULT(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    show_text("SO_ERROR again", errno_name(error));
    close(fd);
}

int main(void)
{
    struct sockaddr_in address = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    need(bind(server, (void *)&address, sizeof address) == 0 && listen(server, 1) == 0);
    need(getsockname(server, (void *)&address, &length) == 0);
    attempt("with a listener", &address);
    close(server);
    attempt("without", &address);
    return 0;
}
