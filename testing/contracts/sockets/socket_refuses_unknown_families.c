/*
 * socket(2): unknown families, types and protocols each have their errno; socket calls on other files are
 * ENOTSOCK.
 */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

int main(void)
{
    int ends[2];
    char byte;
    need(pipe(ends) == 0);
    OUTCOME(socket(AF_UNIX, SOCK_STREAM, 0));
    OUTCOME(socket(AF_UNIX, SOCK_RAW, 0));
    OUTCOME(socket(AF_UNIX, SOCK_STREAM, 99));
    OUTCOME(socket(AF_UNIX, 55, 0));
    OUTCOME(socket(AF_UNIX, SOCK_STREAM | 0x100000, 0));
    OUTCOME(socket(200, SOCK_STREAM, 0));
    OUTCOME(socket(-1, SOCK_STREAM, 0));
    OUTCOME(socket(AF_INET, SOCK_STREAM, 99));
    OUTCOME(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
    OUTCOME(socket(AF_INET, SOCK_SEQPACKET, 0));
    RESULT(bind(ends[0], NULL, 0));
    RESULT(connect(ends[0], NULL, 0));
    RESULT(listen(ends[0], 1));
    RESULT(accept(ends[0], NULL, NULL));
    RESULT(send(ends[1], &byte, 1, 0));
    RESULT(recv(ends[0], &byte, 1, 0));
    RESULT(getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &byte, NULL));
    RESULT(send(700, &byte, 1, 0));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET };
    RESULT(bind(fd, (void *)&address, 3));
    RESULT(bind(fd, BAD_POINTER, sizeof address));
    address.sin_family = AF_UNIX;
    RESULT(bind(fd, (void *)&address, sizeof address));
    RESULT(accept(fd, NULL, NULL));
    RESULT(send(fd, &byte, 1, MSG_NOSIGNAL));
    return 0;
}
