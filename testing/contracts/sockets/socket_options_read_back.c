/* socket(7), tcp(7): options read back what was set, buffers are doubled, and out-of-range values are refused. */
#include "../contract.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static int fd;

static void set_and_show(const char *name, int level, int option, int value)
{
    int got = -1;
    socklen_t length = sizeof got;
    int set = setsockopt(fd, level, option, &value, sizeof value) ? errno : 0;
    int get = getsockopt(fd, level, option, &got, &length) ? errno : 0;
    say("%s: set %s, get %s %d", name, errno_name(set), errno_name(get), got);
}

int main(void)
{
    fd = socket(AF_INET, SOCK_STREAM, 0);
    need(fd != -1);
    set_and_show("SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 1);
    set_and_show("SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1);
    set_and_show("SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, 5);
    set_and_show("SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 10000);
    set_and_show("SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 20000);
    set_and_show("SO_ACCEPTCONN", SOL_SOCKET, SO_ACCEPTCONN, 1);
    set_and_show("SO_ERROR", SOL_SOCKET, SO_ERROR, 1);
    set_and_show("TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1);
    set_and_show("TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 60);
    set_and_show("TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 0);
    set_and_show("IP_TTL", IPPROTO_IP, IP_TTL, 33);
    set_and_show("IP_TTL", IPPROTO_IP, IP_TTL, 300);
    set_and_show("unknown level", 999, 1, 1);
    set_and_show("unknown option", IPPROTO_TCP, 999, 1);
    char small;
    socklen_t length = 1;
    RESULT(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &small, &length));
    show("cut to", length);
    return 0;
}
