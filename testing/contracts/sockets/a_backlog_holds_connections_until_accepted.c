/* listen(2): unix connections wait in the backlog with their data, and a full backlog blocks or says EAGAIN. */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
    scratch();
    struct sockaddr_un name = { AF_UNIX, "socket" };
    int server = socket(AF_UNIX, SOCK_STREAM, 0), clients[4];
    need(bind(server, (void *)&name, sizeof name) == 0 && listen(server, 1) == 0);
    for (int i = 0; i < 4; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        int result = connect(clients[i], (void *)&name, sizeof name);
        say("client %d: %s", i, result ? errno_name(errno) : "connected");
    }
    RESULT(write(clients[0], "early", 5));
    close(clients[0]);
    int fd = accept(server, NULL, NULL);
    char text[8] = { 0 };
    RESULT(read(fd, text, 7));
    show_text("text", text);
    RESULT(read(fd, text, 7));
    RESULT(connect(clients[3], (void *)&name, sizeof name));
    close(server);
    RESULT(read(clients[1], text, 7));
    return 0;
}
