/* accept(2): at the limit of descriptors it fails with EMFILE and the connection waits on. */
#include "contract.h"
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
    struct sockaddr_un address = { AF_UNIX, "name" };
    scratch();
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), fd, last = -1;
    need(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 4) == 0);
    need(connect(client, (void *)&address, sizeof address) == 0 && write(client, "hello", 5) == 5);
    struct rlimit limit = { 64, 64 };
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while ((fd = dup(0)) != -1)
        last = fd;
    RESULT(accept(listener, NULL, NULL));
    RESULT(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    struct pollfd one = { .fd = listener, .events = POLLIN };
    show("still waiting", poll(&one, 1, 0) == 1 && one.revents == POLLIN);
    close(last);
    fd = accept(listener, NULL, NULL);
    char text[8] = "";
    show("accepted", fd == last);
    show("bytes", read(fd, text, 5));
    show_text("read", text);
    return 0;
}
