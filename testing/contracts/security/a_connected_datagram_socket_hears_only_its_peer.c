/*
 * connect(2), unix(7): a datagram socket that is connected takes datagrams from its peer alone: another sender, and one
 * that would connect to it, is refused.
 */
#include "security.h"
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un server = { AF_UNIX, "server" }, client = { AF_UNIX, "client" };

static int bound(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    need(fd != -1 && bind(fd, (void *)name, sizeof *name) == 0 && chmod(name->sun_path, 0666) == 0);
    return fd;
}

static int attempt(void *unused)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    need(fd != -1);
    RESULT(sendto(fd, "forged", 6, 0, (void *)&server, sizeof server));
    OUTCOME(connect(fd, (void *)&server, sizeof server));
    OUTCOME(send(fd, "forged", 6, 0));
    return unused != NULL;
}

int main(void)
{
    char text[16];
    scratch();
    int one = bound(&server), other = bound(&client);
    RESULT(connect(one, (void *)&client, sizeof client));
    show_status("attempt", as_nobody(attempt, NULL));
    RESULT(recv(one, text, sizeof text, 0));
    RESULT(sendto(other, "honest", 6, 0, (void *)&server, sizeof server));
    RESULT(recv(one, text, sizeof text, 0));
    struct ucred peer = { 1, 2, 3 };
    socklen_t length = sizeof peer;
    RESULT(getsockopt(one, SOL_SOCKET, SO_PEERCRED, &peer, &length));
    say("its peer: process %s, user %d, group %d", peer.pid ? "known" : "unknown", (int)peer.uid, (int)peer.gid);
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    RESULT(connect(one, &none, sizeof none));
    show_status("attempt", as_nobody(attempt, NULL));
    RESULT(recv(one, text, sizeof text, 0));
    return 0;
}
