/*
 * udp(7): datagrams keep borders and senders, a connected socket filters and learns ECONNREFUSED, oversize is
 * EMSGSIZE.
 */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

int main(void)
{
    struct sockaddr_in one = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } }, two = one, from;
    socklen_t length = sizeof one;
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    need(bind(a, (void *)&one, sizeof one) == 0 && getsockname(a, (void *)&one, &length) == 0);
    need(bind(b, (void *)&two, sizeof two) == 0 && getsockname(b, (void *)&two, &length) == 0);
    RESULT(sendto(a, "first", 5, 0, (void *)&two, sizeof two));
    RESULT(sendto(a, "", 0, 0, (void *)&two, sizeof two));
    RESULT(sendto(a, "third one", 9, 0, (void *)&two, sizeof two));
    char text[16] = { 0 };
    RESULT(recvfrom(b, text, 15, 0, (void *)&from, &length));
    say("\"%s\", sender right %d", text, from.sin_port == one.sin_port);
    RESULT(recv(b, text, 15, 0));
    RESULT(recv(b, text, 4, 0));
    RESULT(recv(b, text, 15, MSG_DONTWAIT));
    RESULT(send(a, "x", 1, 0));
    RESULT(connect(a, (void *)&two, sizeof two));
    RESULT(send(a, "x", 1, 0));
    RESULT(recv(b, text, 15, 0));
    static char large[70000];
    RESULT(send(a, large, sizeof large, 0));
    close(b);
    RESULT(send(a, "x", 1, 0));
    struct pollfd wait = { a, POLLIN, 0 };
    need(poll(&wait, 1, 1000) >= 0);
    RESULT(recv(a, text, 15, MSG_DONTWAIT));
    RESULT(recv(a, text, 15, MSG_DONTWAIT));
    return 0;
}
