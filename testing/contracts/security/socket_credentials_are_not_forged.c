/*
 * unix(7), SCM_CREDENTIALS: an ordinary sender gives its own process id and ids it has; anything else is EPERM.
 */
#include "security.h"
#include <sys/socket.h>

static int pair[2];

static long send_as(pid_t pid, uid_t uid, gid_t gid)
{
    struct { struct cmsghdr head; struct ucred ids; } control;
    struct iovec byte = { "x", 1 };
    memset(&control, 0, sizeof control);
    control.head.cmsg_len = CMSG_LEN(sizeof(struct ucred));
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_CREDENTIALS;
    control.ids = (struct ucred){ pid, uid, gid };
    struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control,
        .msg_controllen = sizeof control };
    return sendmsg(pair[0], &message, MSG_DONTWAIT);
}

static int attempt(void *unused)
{
    RESULT(send_as(getpid(), NOBODY, NOBODY));
    RESULT(send_as(getpid(), 0, NOBODY));
    RESULT(send_as(getpid(), NOBODY, 0));
    RESULT(send_as(1, NOBODY, NOBODY));
    RESULT(send_as(getppid(), NOBODY, NOBODY));
    RESULT(send_as(getpid(), -1, NOBODY));
    return unused != NULL;
}

static int several(void *unused)
{
    need(setresuid(NOBODY, 1000, 2000) == 0);
    RESULT(send_as(getpid(), NOBODY, 0));
    RESULT(send_as(getpid(), 1000, 0));
    RESULT(send_as(getpid(), 2000, 0));
    RESULT(send_as(getpid(), 3000, 0));
    return unused != NULL;
}

int main(void)
{
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    as_nobody(attempt, NULL);
    section("several ids");
    in_child(several, NULL);
    section("root");
    RESULT(send_as(getppid(), 1000, 1000));
    RESULT(send_as(9999999, 0, 0));
    return 0;
}
