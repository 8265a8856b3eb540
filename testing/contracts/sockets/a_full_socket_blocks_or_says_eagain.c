/*
 * socket(7): a nonblocking sender gets EAGAIN when the buffer is full, poll says when room returns, blocking
 * senders wait.
 */
#include "../contract.h"
#include <sys/socket.h>

static int drain(void *socket)
{
    static char block[65536];
    long total = 0, got;
    sleep_ms(40);
    while ((got = read(*(int *)socket, block, sizeof block)) > 0)
        total += got;
    return total == 3000000 ? 0 : 1;
}

int main(void)
{
    static char block[100000];
    int pair[2];
    long total = 0, sent;
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    while ((sent = write(pair[0], block, 1000)) > 0)
        total += sent;
    say("stopped by %s after at least 64 KiB %d", errno_name(errno), total >= 65536);
    struct pollfd wait = { pair[0], POLLOUT, 0 };
    RESULT(poll(&wait, 1, 0));
    while (read(pair[1], block, sizeof block) > 0)
        ;
    RESULT(poll(&wait, 1, 0));
    fcntl(pair[0], F_SETFL, 0);
    fcntl(pair[1], F_SETFL, 0);
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        _exit(drain(&pair[1]));
    }
    for (int i = 0; i < 30; i++)
        need(write(pair[0], block, 100000) == 100000);
    close(pair[0]);
    show_status("reader", reap(child));
    return 0;
}
