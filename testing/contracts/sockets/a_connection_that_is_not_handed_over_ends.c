/*
 * accept(2): a call that cannot store the peer's address answers EFAULT or EINVAL, and the connection, which it took
 * from the listener, is closed: the other side sees the end and does not wait for ever.
 */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/un.h>

static void attempt(const char *what, void *address, socklen_t *length)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    socklen_t size = sizeof name;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    struct pollfd end = { client, POLLIN, 0 }, waiting = { listener, POLLIN, 0 };
    char byte;
    need(bind(listener, (void *)&name, sizeof name.sun_family) == 0 && listen(listener, 1) == 0);
    need(getsockname(listener, (void *)&name, &size) == 0 && connect(client, (void *)&name, size) == 0);
    section(what);
    RESULT(syscall(SYS_accept, listener, address, length));
    show("connections left", poll(&waiting, 1, 0));
    check(poll(&end, 1, 1000) == 1 && end.revents & POLLHUP, "the client is told of the end");
    RESULT(recv(client, &byte, 1, MSG_DONTWAIT));
    RESULT(send(client, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    close(client);
    close(listener);
}

int main(void)
{
    struct sockaddr_un name;
    socklen_t negative = -1, whole = sizeof name;
    attempt("an address that cannot be stored", BAD_POINTER, &whole);
    attempt("a length that cannot be read", &name, BAD_POINTER);
    attempt("a negative length", &name, &negative);
    return 0;
}
