/* nc(1) of BusyBox: a listener and a client exchange bytes over loopback TCP and end when the input does. */
#include "../contract.h"
#include <arpa/inet.h>
#include <sys/socket.h>

int main(void)
{
    scratch();
    struct sockaddr_in address = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(bind(server, (void *)&address, sizeof address) == 0 && listen(server, 1) == 0);
    need(getsockname(server, (void *)&address, &length) == 0);
    char command[128];
    snprintf(command, sizeof command, "seq 1 2000 | busybox nc 127.0.0.1 %d", ntohs(address.sin_port));
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    int fd = accept(server, NULL, NULL);
    char text[4096];
    long total = 0, got, sum = 0;
    while (total < 8893 && (got = read(fd, text, sizeof text)) > 0)
        for (long i = 0; i < got; i++, total++)
            sum += text[i];
    need(write(fd, "answer\n", 7) == 7);
    close(fd);
    show_status("client", reap(child));
    say("bytes %ld sum %ld", total, sum);
    return 0;
}
