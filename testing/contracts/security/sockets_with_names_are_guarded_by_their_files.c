/*
 * unix(7), "Pathname socket ownership and permissions": connecting and sending need write permission to the socket's
 * file and search permission on the way there; removing the name or putting another file there needs the directory's;
 * chmod of the descriptor does not change the file.
 */
#include "security.h"
#include <sys/socket.h>
#include <sys/un.h>

static int bound(const char *path, int kind, mode_t mode)
{
    struct sockaddr_un name = { AF_UNIX, "" };
    int fd = socket(AF_UNIX, kind, 0);
    strcpy(name.sun_path, path);
    need(bind(fd, (void *)&name, sizeof name) == 0 && chmod(path, mode) == 0);
    need(kind == SOCK_DGRAM || listen(fd, 8) == 0);
    return fd;
}

static void tried(const char *path, int kind)
{
    struct sockaddr_un name = { AF_UNIX, "" };
    int fd = socket(AF_UNIX, kind, 0);
    strcpy(name.sun_path, path);
    if (kind == SOCK_DGRAM) {
        ssize_t sent = sendto(fd, "x", 1, MSG_DONTWAIT, (void *)&name, sizeof name);
        say("sendto %s: %s", path, sent == 1 ? "ok" : errno_name(errno));
    }
    say("connect %s: %s", path, connect(fd, (void *)&name, sizeof name) == 0 ? "ok" : errno_name(errno));
    close(fd);
}

static int attempt(void *unused)
{
    struct sockaddr_un name = { AF_UNIX, "open" };
    (void)unused;
    tried("open", SOCK_STREAM);
    tried("closed", SOCK_STREAM);
    tried("read-only", SOCK_STREAM);
    tried("hidden/open", SOCK_STREAM);
    tried("packets", SOCK_DGRAM);
    tried("closed-packets", SOCK_DGRAM);
    tried("packets", SOCK_STREAM);
    tried("link", SOCK_STREAM);
    tried("plain", SOCK_STREAM);
    tried("roots-plain", SOCK_STREAM);
    OUTCOME(unlink("open"));
    OUTCOME(rename("open", "moved"));
    OUTCOME(open("open", O_RDWR));
    OUTCOME(open("open", O_PATH));
    OUTCOME(chmod("open", 0600));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    OUTCOME(bind(fd, (void *)&name, sizeof name));
    strcpy(name.sun_path, "sub/mine");
    OUTCOME(bind(fd, (void *)&name, sizeof name));
    OUTCOME(fchmod(fd, 0));
    OUTCOME(fchown(fd, -1, -1));
    struct stat meta;
    need(stat("sub/mine", &meta) == 0);
    say("the file: %o", meta.st_mode);
    return 0;
}

int main(void)
{
    scratch();
    umask(0);
    need(mkdir("hidden", 0700) == 0 && mkdir("sub", 01777) == 0 && symlink("closed", "link") == 0);
    bound("open", SOCK_STREAM, 0666);
    bound("closed", SOCK_STREAM, 0600);
    bound("read-only", SOCK_STREAM, 0444);
    bound("hidden/open", SOCK_STREAM, 0666);
    bound("packets", SOCK_DGRAM, 0666);
    bound("closed-packets", SOCK_DGRAM, 0700);
    put_file("plain", "x", 0666);
    put_file("roots-plain", "x", 0600);
    as_nobody(attempt, NULL);
    return 0;
}
