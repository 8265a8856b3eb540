/* ipv6(7): ::1 connects, a dual socket accepts IPv4 as a mapped address, IPV6_V6ONLY forbids it. */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static int listener(int only, uint16_t *port)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6 };
    socklen_t length = sizeof address;
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd == -1) {
        say("no IPv6: %s", errno_name(errno));
        exit(0);
    }
    need(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) == 0);
    need(bind(fd, (void *)&address, sizeof address) == 0 && listen(fd, 4) == 0);
    need(getsockname(fd, (void *)&address, &length) == 0);
    *port = address.sin6_port;
    return fd;
}

static void show_peer(int server)
{
    struct sockaddr_in6 peer;
    socklen_t length = sizeof peer;
    char text[64];
    int fd = accept(server, (void *)&peer, &length);
    need(fd != -1);
    say("peer %s", inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof text));
    close(fd);
}

int main(void)
{
    uint16_t port;
    int server = listener(0, &port), client = socket(AF_INET6, SOCK_STREAM, 0), four = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in6 six_address = { .sin6_family = AF_INET6, .sin6_port = port,
        .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_in four_address = { AF_INET, port, { htonl(INADDR_LOOPBACK) }, { 0 } };
    RESULT(connect(client, (void *)&six_address, sizeof six_address));
    show_peer(server);
    RESULT(connect(four, (void *)&four_address, sizeof four_address));
    show_peer(server);
    int strict = listener(1, &port);
    four_address.sin_port = port;
    four = socket(AF_INET, SOCK_STREAM, 0);
    RESULT(connect(four, (void *)&four_address, sizeof four_address));
    close(strict);
    return 0;
}
