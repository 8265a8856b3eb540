/*
 * socket(7), unix(7), sendmsg(2), getsockopt(2), accept4(2): kinds, flags, lengths and states that local sockets
 * refuse.
 */
#include "contract.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
    scratch();
    int pair[2], value = 1, file = open(".", O_RDONLY);
    int stream = socket(AF_UNIX, SOCK_STREAM, 0), datagram = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "here" };
    struct sockaddr_un other = { .sun_family = AF_UNIX, .sun_path = "there" };
    socklen_t length = sizeof name, negative = -1;
    char room[200];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    section("socket, socketpair");
    RESULT(socket(AF_UNIX, 9, 0));
    RESULT(socket(AF_UNIX, SOCK_STREAM | 0x100, 0));
    RESULT(socket(AF_UNIX, SOCK_STREAM, 7));
    RESULT(socket(AF_UNIX, SOCK_RAW, 0) >= 0);
    RESULT(socket(-1, SOCK_STREAM, 0));
    RESULT(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, BAD_POINTER));
    RESULT(socketpair(AF_UNIX, SOCK_STREAM, 7, (int[2]){ 0 }));
    section("bind, listen, accept, connect");
    RESULT(listen(stream, 1));
    RESULT(bind(stream, (void *)&name, 1));
    RESULT(bind(stream, (void *)&name, sizeof name + 1));
    RESULT(bind(file, (void *)&name, sizeof name));
    RESULT(bind(999, (void *)&name, sizeof name));
    RESULT(bind(stream, BAD_POINTER, sizeof name));
    RESULT(accept(stream, NULL, NULL));
    RESULT(bind(stream, (void *)&name, sizeof name));
    RESULT(bind(stream, (void *)&other, sizeof other));
    RESULT(bind(datagram, (void *)&name, sizeof name));
    RESULT(accept(stream, NULL, NULL));
    RESULT(listen(stream, -1));
    RESULT(listen(datagram, 1));
    RESULT(listen(pair[0], 1));
    RESULT(syscall(SYS_accept4, stream, NULL, NULL, 1));
    RESULT(syscall(SYS_accept4, datagram, NULL, NULL, 0));
    RESULT(syscall(SYS_accept4, pair[0], NULL, NULL, 0));
    RESULT(connect(pair[0], (void *)&name, sizeof name));
    RESULT(connect(stream, (void *)&name, sizeof name));
    RESULT(connect(datagram, (void *)&name, sizeof name));
    RESULT(connect(datagram, (void *)&other, sizeof other));
    RESULT(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&(struct sockaddr){ .sa_family = AF_INET }, 16));
    section("names");
    RESULT(getsockname(stream, (void *)&name, &negative));
    RESULT(syscall(SYS_getsockname, stream, BAD_POINTER, &length));
    RESULT(syscall(SYS_getsockname, stream, &name, BAD_POINTER));
    RESULT(getpeername(stream, (void *)&name, &length));
    RESULT(getsockname(file, (void *)&name, &length));
    section("options");
    RESULT(setsockopt(stream, SOL_SOCKET, SO_PASSCRED, &value, 1));
    RESULT(setsockopt(stream, SOL_SOCKET, SO_PASSCRED, BAD_POINTER, 4));
    RESULT(setsockopt(stream, SOL_SOCKET, SO_PASSCRED, &value, -1));
    RESULT(setsockopt(stream, SOL_SOCKET, 9999, &value, 4));
    RESULT(setsockopt(stream, SOL_SOCKET, SO_TYPE, &value, 4));
    RESULT(setsockopt(stream, 9999, 1, &value, 4));
    length = 4;
    RESULT(getsockopt(stream, SOL_SOCKET, 9999, &value, &length));
    RESULT(getsockopt(stream, SOL_SOCKET, SO_TYPE, &value, &negative));
    RESULT(syscall(SYS_getsockopt, stream, SOL_SOCKET, SO_TYPE, BAD_POINTER, &length));
    RESULT(syscall(SYS_getsockopt, stream, SOL_SOCKET, SO_TYPE, &value, BAD_POINTER));
    length = 2;
    RESULT(getsockopt(stream, SOL_SOCKET, SO_TYPE, &value, &length));
    show("length", length);
    section("messages");
    struct iovec one = { room, 4 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 }, many = { .msg_iov = &one, .msg_iovlen = 1025 },
        bad = { .msg_iov = BAD_POINTER, .msg_iovlen = 1 };
    RESULT(sendmsg(pair[0], &many, 0));
    RESULT(sendmsg(pair[0], &bad, 0));
    RESULT(sendmsg(pair[0], BAD_POINTER, 0));
    RESULT(sendmsg(file, &message, 0));
    RESULT(sendmsg(stream, &message, MSG_NOSIGNAL));
    RESULT(send(datagram, room, 4, 0));
    RESULT(sendto(datagram, room, 4, 0, (void *)&other, sizeof other));
    RESULT(sendto(datagram, room, 4, 0, (void *)&name, 1));
    RESULT(sendto(pair[0], room, 4, 0, (void *)&name, sizeof name));
    RESULT(send(pair[0], room, 4, MSG_OOB));
    RESULT(recv(pair[1], room, 4, MSG_DONTWAIT | MSG_OOB));
    RESULT(recv(pair[1], room, 4, MSG_DONTWAIT));
    RESULT(recv(stream, room, 4, MSG_DONTWAIT));
    RESULT(recv(datagram, room, 4, MSG_DONTWAIT));
    RESULT(send(pair[0], BAD_POINTER, 4, 0));
    RESULT(shutdown(pair[0], 3));
    RESULT(shutdown(pair[0], -1));
    RESULT(shutdown(stream, SHUT_RD));
    RESULT(shutdown(file, SHUT_RD));
    RESULT(lseek(pair[0], 0, SEEK_SET));
    RESULT(pread(pair[0], room, 1, 0));
    return 0;
}
