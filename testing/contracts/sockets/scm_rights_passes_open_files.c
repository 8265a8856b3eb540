/*
 * unix(7): SCM_RIGHTS installs the same open file in the receiver, close-on-exec if asked; a short buffer drops
 * the rest.
 */
#include "../contract.h"
#include <sys/socket.h>

static ssize_t send_files(int socket, const int *files, int count)
{
    char control[CMSG_SPACE(8 * sizeof(int))] = { 0 };
    struct iovec vector = { "x", 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
                              .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(header), files, count * sizeof(int));
    return sendmsg(socket, &message, 0);
}

static int receive_files(int socket, int *files, int room, int flags)
{
    char control[CMSG_SPACE(8 * sizeof(int))] = { 0 }, byte;
    struct iovec vector = { &byte, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
                              .msg_controllen = room ? CMSG_LEN(room * sizeof(int)) : 0 };
    ssize_t got = recvmsg(socket, &message, flags);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int count = header ? (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
    if (header)
        memcpy(files, CMSG_DATA(header), count * sizeof(int));
    say("received %zd byte, %d files, control cut %d", got, count, !!(message.msg_flags & MSG_CTRUNC));
    return count;
}

static int child(void *socket)
{
    int file;
    char byte;
    if (receive_files(*(int *)socket, &file, 1, MSG_CMSG_CLOEXEC) != 1)
        return 1;
    say("close-on-exec %d", fcntl(file, F_GETFD));
    need(read(file, &byte, 1) == 1);
    say("read %c", byte);
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "abc", 0600);
    int pair[2], file = open("file", O_RDONLY), files[4], ends[2];
    char byte;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    RESULT(send_files(pair[0], &file, 1));
    show_status("child", in_child(child, &pair[1]));
    need(read(file, &byte, 1) == 1);
    say("offset is shared: %c", byte);
    section("several at once, and too little room");
    need(pipe(ends) == 0);
    int three[3] = { file, ends[0], ends[1] };
    RESULT(send_files(pair[0], three, 3));
    receive_files(pair[1], files, 3, 0);
    RESULT(write(files[2], "p", 1));
    RESULT(read(ends[0], &byte, 1));
    RESULT(send_files(pair[0], three, 3));
    receive_files(pair[1], files, 1, 0);
    RESULT(send_files(pair[0], three, 3));
    receive_files(pair[1], files, 0, 0);
    int bad = 800;
    RESULT(send_files(pair[0], &bad, 1));
    section("a file in flight stays open");
    RESULT(send_files(pair[0], &ends[1], 1));
    close(ends[1]);
    close(files[0]);
    need(receive_files(pair[1], files, 1, 0) == 1);
    RESULT(write(files[0], "q", 1));
    return 0;
}
