/* unix(7): binding only the family picks an abstract name; connecting to a socket file needs write permission. */
#include "../contract.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static int user(void *unused)
{
    (void)unused;
    struct sockaddr_un name = { AF_UNIX, "socket" };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    need(setuid(1000) == 0);
    RESULT(connect(fd, (void *)&name, sizeof name));
    need(seteuid(1000) == 0);
    return 0;
}

int main(void)
{
    scratch();
    struct sockaddr_un name = { .sun_family = AF_UNIX }, got = { 0 };
    socklen_t length = sizeof got;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    RESULT(bind(fd, (void *)&name, sizeof name.sun_family));
    RESULT(getsockname(fd, (void *)&got, &length));
    say("length %d, abstract %d", (int)length, got.sun_path[0] == 0);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(name.sun_path, "socket");
    umask(077);
    need(bind(server, (void *)&name, sizeof name) == 0 && listen(server, 4) == 0);
    struct stat meta;
    need(stat("socket", &meta) == 0);
    say("mode %o", meta.st_mode & 07777);
    show_status("forbidden", in_child(user, NULL));
    need(chmod("socket", 0666) == 0);
    show_status("allowed", in_child(user, NULL));
    memset(name.sun_path, 'n', sizeof name.sun_path);
    int other = socket(AF_UNIX, SOCK_STREAM, 0);
    RESULT(bind(other, (void *)&name, sizeof name));
    strcpy(name.sun_path, "absent/socket");
    RESULT(bind(other, (void *)&name, sizeof name));
    RESULT(bind(other, (void *)&name, 1));
    return 0;
}
