/*
 * unix(7), SCM_CREDENTIALS: a message without credentials of its own carries the real user and group of its sender: a
 * set-user-ID program whose output is a socket does not speak for its owner. SO_PEERCRED tells effective ids.
 */
#include "security.h"
#include <sys/socket.h>

static int pair[2];

static void tell_sender(void)
{
    char text[16], control[CMSG_SPACE(sizeof(struct ucred))] = "";
    struct iovec room = { text, sizeof text };
    struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1, .msg_control = control,
        .msg_controllen = sizeof control };
    need(recvmsg(pair[1], &message, MSG_DONTWAIT) > 0);
    struct ucred sender;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    need(head && head->cmsg_type == SCM_CREDENTIALS);
    memcpy(&sender, CMSG_DATA(head), sizeof sender);
    say("from user %d, group %d", (int)sender.uid, (int)sender.gid);
}

static int explicitly(uid_t uid, gid_t gid)
{
    struct { struct cmsghdr head; struct ucred ids; } control;
    struct iovec byte = { "x", 1 };
    memset(&control, 0, sizeof control);
    control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(struct ucred)), .cmsg_level = SOL_SOCKET,
        .cmsg_type = SCM_CREDENTIALS };
    control.ids = (struct ucred){ getpid(), uid, gid };
    struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control,
        .msg_controllen = sizeof control };
    return sendmsg(pair[0], &message, MSG_DONTWAIT);
}

/* As a set-user-ID program of root that a user started: its real ids are the user's. */
static int as_set_id(void *unused)
{
    (void)unused;
    need(setresgid(NOBODY, 0, 0) == 0 && setresuid(NOBODY, 0, 0) == 0);
    need(write(pair[0], "x", 1) == 1);
    tell_sender();
    RESULT(explicitly(NOBODY, NOBODY));
    tell_sender();
    RESULT(explicitly(0, 0));
    tell_sender();
    int own[2];
    struct ucred peer;
    socklen_t length = sizeof peer;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0);
    need(getsockopt(own[0], SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0);
    say("peer is user %d, group %d", (int)peer.uid, (int)peer.gid);
    return 0;
}

int main(void)
{
    static const int kinds[] = { SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM };
    static const char *const names[] = { "datagrams", "packets", "a stream" };
    for (size_t at = 0; at < COUNT_OF(kinds); at++) {
        int on = 1;
        section(names[at]);
        need(socketpair(AF_UNIX, kinds[at], 0, pair) == 0);
        need(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
        show_status("sender", in_child(as_set_id, NULL));
    }
    return 0;
}
