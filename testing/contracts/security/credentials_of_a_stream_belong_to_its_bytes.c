/*
 * unix(7), SO_PASSCRED: what a receive of a stream returns comes from one sender, the one whose credentials come along:
 * an ordinary user's bytes are never told as those of a privileged program that writes to the same socket later.
 */
#include "security.h"
#include <sys/socket.h>

static int pair[2];

static int says(void *text)
{
    return write(pair[0], text, strlen(text)) == (ssize_t)strlen(text) ? 0 : 1;
}

static void receive(void)
{
    char text[64] = "", control[CMSG_SPACE(sizeof(struct ucred))] = "";
    struct iovec room = { text, sizeof text - 1 };
    struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1, .msg_control = control,
        .msg_controllen = sizeof control };
    ssize_t got = recvmsg(pair[1], &message, MSG_DONTWAIT);
    if (got == -1) {
        say("nothing more: %s", errno_name(errno));
        return;
    }
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_type != SCM_CREDENTIALS) {
        say("\"%s\" without credentials", text);
        return;
    }
    struct ucred sender;
    memcpy(&sender, CMSG_DATA(head), sizeof sender);
    say("\"%s\" from user %d, group %d", text, (int)sender.uid, (int)sender.gid);
}

int main(void)
{
    int on = 1;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    need(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    section("a user, then root");
    as_nobody(says, "delete all\n");
    need(says("done\n") == 0);
    for (int i = 0; i < 3; i++)
        receive();
    section("root, then a user");
    need(says("start\n") == 0);
    as_nobody(says, "delete all\n");
    for (int i = 0; i < 3; i++)
        receive();
    section("two of one process");
    need(says("one ") == 0 && says("two\n") == 0);
    for (int i = 0; i < 2; i++)
        receive();
    return 0;
}
