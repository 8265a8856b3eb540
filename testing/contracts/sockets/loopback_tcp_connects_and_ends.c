/* tcp(7): over loopback a listener accepts, data flows both ways, the end is seen, and a port without one refuses. */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static int client(void *port)
{
    struct sockaddr_in address = { AF_INET, *(uint16_t *)port, { htonl(INADDR_LOOPBACK) }, { 0 } };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char text[16] = { 0 };
    int connected = connect(fd, (void *)&address, sizeof address);
    need(write(fd, "question", 8) == 8);
    int ended = shutdown(fd, SHUT_WR);
    need(read(fd, text, 15) > 0);
    say("client: connect %d shutdown %d", connected, ended);
    show_text("answer", text);
    return 0;
}

int main(void)
{
    struct sockaddr_in address = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } }, peer;
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RESULT(bind(server, (void *)&address, sizeof address));
    RESULT(getsockname(server, (void *)&address, &length));
    show("a port was chosen", address.sin_port != 0);
    int early = socket(AF_INET, SOCK_STREAM, 0);
    RESULT(connect(early, (void *)&address, sizeof address));
    RESULT(listen(server, 5));
    pid_t child = spawn(client, &address.sin_port);
    length = sizeof peer;
    int fd = accept(server, (void *)&peer, &length);
    need(fd != -1);
    say("peer family is inet %d, loopback %d", peer.sin_family == AF_INET,
        peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    char text[16] = { 0 };
    long total = 0, got;
    while ((got = read(fd, text + total, 15 - total)) > 0)
        total += got;
    show_text("question", text);
    need(write(fd, "answer", 6) == 6);
    show_status("client", reap(child));
    close(fd);
    int second = socket(AF_INET, SOCK_STREAM, 0);
    RESULT(bind(second, (void *)&address, sizeof address));
    RESULT(listen(-1, 1));
    RESULT(read(early, text, 1));
    return 0;
}
