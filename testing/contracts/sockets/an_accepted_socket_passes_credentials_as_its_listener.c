/*
 * unix(7), SO_PASSCRED: a connection that a listener with SO_PASSCRED accepts passes credentials too, also those of
 * what was sent before it was accepted; bytes of before the option was set have no sender.
 */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/un.h>

static void receive(int fd)
{
    char text[16] = "", control[CMSG_SPACE(sizeof(struct ucred))] = "";
    struct iovec room = { text, sizeof text - 1 };
    struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1, .msg_control = control,
        .msg_controllen = sizeof control };
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    struct ucred sender;
    if (got <= 0 || !head) {
        say("%zd bytes, no credentials", got);
        return;
    }
    memcpy(&sender, CMSG_DATA(head), sizeof sender);
    say("\"%s\" from %s, user %d, group %d", text, sender.pid == getpid() ? "this process" : "none", (int)sender.uid,
        (int)sender.gid);
}

int main(void)
{
    struct sockaddr_un name = { AF_UNIX, "server" };
    int on = 1, kinds[] = { SOCK_STREAM, SOCK_SEQPACKET };
    scratch();
    for (size_t at = 0; at < COUNT_OF(kinds); at++) {
        section(at ? "packets" : "stream");
        int listener = socket(AF_UNIX, kinds[at], 0), client = socket(AF_UNIX, kinds[at], 0), pair[2];
        need(listener != -1 && client != -1 && bind(listener, (void *)&name, sizeof name) == 0);
        need(listen(listener, 4) == 0);
        need(setsockopt(listener, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
        need(connect(client, (void *)&name, sizeof name) == 0 && send(client, "early", 5, 0) == 5);
        int server = accept(listener, NULL, NULL), value = 0;
        socklen_t length = sizeof value;
        need(server != -1 && getsockopt(server, SOL_SOCKET, SO_PASSCRED, &value, &length) == 0);
        show("SO_PASSCRED", value);
        receive(server);
        need(send(client, "late", 4, 0) == 4);
        receive(server);
        unlink("server");
        need(socketpair(AF_UNIX, kinds[at], 0, pair) == 0 && send(pair[0], "before", 6, 0) == 6);
        need(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
        receive(pair[1]);
    }
    return 0;
}
