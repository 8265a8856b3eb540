/*
 * recvmsg(2), unix(7): of a buffer for control messages that lies at the end of the address space, or beyond what a
 * program may use, only MSG_CTRUNC tells. The bytes arrive, the files are closed, and no sum of its address and length
 * wraps.
 */
#include "security.h"
#include <sys/socket.h>

static void receive(const char *where, unsigned long at, unsigned long room, int credentials)
{
    int pair[2], on = 1;
    char byte = 'x', control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec one = { &byte, 1 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };
    message.msg_control = control, message.msg_controllen = sizeof control;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    if (credentials)
        need(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &pair[0], sizeof(int));
    need(sendmsg(pair[0], &message, 0) == 1);
    message.msg_control = (void *)at, message.msg_controllen = room;
    errno = 0;
    long got = syscall(SYS_recvmsg, pair[1], &message, 0);
    say("%s, %lu bytes%s: %s, %s, control length %zu", where, room, credentials ? ", credentials" : "",
        got == -1 ? errno_name(errno) : "received", message.msg_flags & MSG_CTRUNC ? "cut" : "whole",
        (size_t)message.msg_controllen);
    close(pair[0]);
    close(pair[1]);
}

static int attempt(void *unused)
{
    (void)unused;
    for (int credentials = 0; credentials < 2; credentials++) {
        receive("the last byte", -1UL, 64, credentials);
        receive("the last bytes", -16UL, 64, credentials);
        receive("the last bytes", -16UL, 0x7fffffff, credentials);
        receive("the last pages", -8192UL, 4096, credentials);
        receive("the end of what programs have", 0x7ffffffff000UL - 8, 64, credentials);
        receive("nowhere", 0x7ffffffff000UL, 24, credentials);
    }
    int fd = dup(0);
    show("descriptors left behind", fd - 3);
    return 0;
}

int main(void)
{
    as_nobody(attempt, NULL);
    return 0;
}
