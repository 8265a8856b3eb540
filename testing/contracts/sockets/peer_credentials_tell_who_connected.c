/* unix(7): SO_PEERCRED names the process at the other end; SO_PASSCRED adds the sender's ids to each message. */
#include "../contract.h"
#include <sys/socket.h>

static int sender(void *socket)
{
    need(setgid(3000) == 0 && setuid(2000) == 0);
    return write(*(int *)socket, "x", 1) != 1;
}

int main(void)
{
    int pair[2], on = 1, type = 0;
    struct ucred peer;
    socklen_t length = sizeof peer;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    RESULT(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &peer, &length));
    say("pid mine %d uid %d gid %d", peer.pid == getpid(), (int)peer.uid, (int)peer.gid);
    RESULT(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    pid_t child = spawn(sender, &pair[1]);
    char control[64], byte;
    struct iovec vector = { &byte, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
                              .msg_controllen = sizeof control };
    RESULT(recvmsg(pair[0], &message, 0));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    need(header && header->cmsg_type == SCM_CREDENTIALS);
    memcpy(&peer, CMSG_DATA(header), sizeof peer);
    say("pid of the sender %d uid %d gid %d", peer.pid == child, (int)peer.uid, (int)peer.gid);
    show_status("sender", reap(child));
    length = sizeof type;
    RESULT(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &type, &length));
    show("type is stream", type == SOCK_STREAM);
    RESULT(getsockopt(pair[0], SOL_SOCKET, SO_DOMAIN, &type, &length));
    show("domain is unix", type == AF_UNIX);
    RESULT(getsockopt(pair[0], SOL_SOCKET, 9999, &type, &length));
    RESULT(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, BAD_POINTER, &length));
    RESULT(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, 1));
    return 0;
}
