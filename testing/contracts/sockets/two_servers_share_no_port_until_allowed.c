/*
 * bind(2), ip(7): a port in use is EADDRINUSE, SO_REUSEPORT shares it, privileged ports need root, foreign
 * addresses do not bind.
 */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static struct sockaddr_in address = { AF_INET, 0, { 0 }, { 0 } };

static int user(void *unused)
{
    (void)unused;
    need(setuid(1000) == 0);
    address.sin_port = htons(81);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    RESULT(bind(fd, (void *)&address, sizeof address));
    return 0;
}

int main(void)
{
    int on = 1, fds[4];
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 4; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    need(bind(fds[0], (void *)&address, sizeof address) == 0 && getsockname(fds[0], (void *)&address, &length) == 0);
    RESULT(bind(fds[1], (void *)&address, sizeof address));
    RESULT(bind(fds[0], (void *)&address, sizeof address));
    need(setsockopt(fds[1], SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0);
    RESULT(bind(fds[1], (void *)&address, sizeof address));
    close(fds[0]);
    RESULT(bind(fds[1], (void *)&address, sizeof address));
    need(setsockopt(fds[2], SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0);
    RESULT(bind(fds[2], (void *)&address, sizeof address));
    RESULT(listen(fds[1], 1));
    RESULT(listen(fds[2], 1));
    address.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, for documentation only. */
    RESULT(bind(fds[3], (void *)&address, sizeof address));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    show_status("user", in_child(user, NULL));
    return 0;
}
