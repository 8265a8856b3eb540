/*
 * unix(7): sockets sent through each other and closed keep each other alive; the kernel finds such circles and ends
 * what hangs in them. Seen here by a pipe whose writing end was in the circle: its reader gets the end of the file.
 * Files that can still be received stay.
 */
#include "contract.h"
#include <sys/socket.h>

static int send_files(int to, const int *files, int count)
{
    char byte = 'x', room[CMSG_SPACE(sizeof(int) * 4)] = { 0 };
    struct iovec one = { &byte, 1 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = room };
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(head), files, sizeof(int) * count);
    return sendmsg(to, &message, 0);
}

static int receive_file(int from)
{
    char byte, room[CMSG_SPACE(sizeof(int) * 4)];
    struct iovec one = { &byte, 1 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    if (recvmsg(from, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
        return -1;
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Closing any local socket makes the kernel look. */
static void poke(void)
{
    for (int i = 0; i < 3; i++) {
        int pair[2];
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        close(pair[0]);
        close(pair[1]);
        sleep_ms(20);
    }
}

static const char *state(int fd)
{
    char byte;
    struct pollfd one = { .fd = fd, .events = POLLIN };
    if (poll(&one, 1, 1500) == 0)
        return "open";
    return read(fd, &byte, 1) == 0 ? "ended" : "readable";
}

int main(void)
{
    int ends[2], pair[2], other[2];
    section("a socket that holds both ends of its pair");
    need(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    RESULT(send_files(pair[0], (int[]){ pair[0], pair[1], ends[1] }, 3));
    close(pair[0]), close(pair[1]), close(ends[1]);
    poke();
    show_text("pipe", state(ends[0]));
    close(ends[0]);
    section("two datagram pairs that hold each other");
    need(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, other) == 0);
    RESULT(send_files(pair[0], (int[]){ other[0], other[1], ends[1] }, 3));
    RESULT(send_files(other[0], (int[]){ pair[0], pair[1] }, 2));
    close(pair[0]), close(pair[1]), close(other[0]), close(other[1]), close(ends[1]);
    poke();
    show_text("pipe", state(ends[0]));
    close(ends[0]);
    section("a connection that was not accepted");
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr name = { .sa_family = AF_UNIX };
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    need(pipe(ends) == 0 && bind(server, &name, 2) == 0 && listen(server, 1) == 0);
    need(getsockname(server, (void *)&bound, &length) == 0 && connect(client, (void *)&bound, length) == 0);
    RESULT(send_files(client, (int[]){ server, client, ends[1] }, 3));
    close(server), close(client), close(ends[1]);
    poke();
    show_text("pipe", state(ends[0]));
    close(ends[0]);
    section("in flight, with a receiver");
    need(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0);
    RESULT(send_files(other[0], (int[]){ ends[1] }, 1));
    RESULT(send_files(pair[0], (int[]){ other[0], other[1] }, 2));
    close(other[0]), close(other[1]), close(ends[1]);
    poke();
    show_text("pipe", state(ends[0]));
    int got = receive_file(pair[1]);
    check(got >= 0, "the socket arrived");
    close(got), close(pair[0]), close(pair[1]);
    poke();
    show_text("pipe", state(ends[0]));
    return 0;
}
