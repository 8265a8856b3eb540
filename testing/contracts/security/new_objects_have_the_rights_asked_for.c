/*
 * umask(2), open(2), mq_open(3), memfd_create(2), unix(7), pty(7): owner, group and mode of everything a user makes.
 * Nothing gets rights for others that were not asked for.
 */
#include "security.h"
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

static void shown(const char *what, int fd)
{
    struct stat meta;
    if (fd == -1 || fstat(fd, &meta) == -1)
        say("%s: %s", what, errno_name(errno));
    else
        say("%s: %o, %d %d, links %d", what, meta.st_mode, (int)meta.st_uid, (int)meta.st_gid, (int)meta.st_nlink);
    close(fd);
}

static void made(const char *path)
{
    struct stat meta;
    if (lstat(path, &meta) == -1)
        say("%s: %s", path, errno_name(errno));
    else
        say("%s: %o, %d %d", path, meta.st_mode, (int)meta.st_uid, (int)meta.st_gid);
}

static void all(const char *where, mode_t mask)
{
    struct sockaddr_un name = { AF_UNIX, "socket" };
    int pair[2], number = -1;
    char path[32];
    sigset_t set;
    say("-- %s, mask %o", where, mask);
    need(mkdir(where, 0777) == 0 && chdir(where) == 0);
    umask(mask);
    close(open("file", O_WRONLY | O_CREAT, 0777));
    close(open("set-id", O_WRONLY | O_CREAT, 06777));
    need(mkdir("directory", 07777) == 0 && mkfifo("fifo", 0666) == 0 && symlink("x", "link") == 0);
    need(mknod("node", S_IFREG | 06755, 0) == 0 && mknod("node-socket", S_IFSOCK | 0777, 0) == 0);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    need(bind(server, (void *)&name, sizeof name) == 0);
    static const char *const names[] = {
        "file", "set-id", "directory", "fifo", "link", "node", "node-socket", "socket",
    };
    for (size_t at = 0; at < COUNT_OF(names); at++)
        made(names[at]);
    shown("the socket", server);
    shown("an unnamed file", open(".", O_TMPFILE | O_RDWR, 0666));
    shown("a memfd", memfd_create("x", 0));
    need(pipe(pair) == 0);
    shown("a pipe", pair[0]);
    shown("its other end", pair[1]);
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    shown("a socket of a pair", pair[0]);
    close(pair[1]);
    shown("an epoll", epoll_create1(0));
    shown("an eventfd", eventfd(0, 0));
    shown("a timerfd", timerfd_create(CLOCK_MONOTONIC, 0));
    sigemptyset(&set);
    shown("a signalfd", signalfd(-1, &set, 0));
    shown("a queue", syscall(SYS_mq_open, "security-modes", O_CREAT | O_RDWR, 0666, NULL));
    syscall(SYS_mq_unlink, "security-modes");
    shown("another's queue", syscall(SYS_mq_open, "security-modes", O_CREAT | O_RDWR, 07755, NULL));
    syscall(SYS_mq_unlink, "security-modes");
    shown("shared memory", open("/dev/shm/security-modes", O_CREAT | O_RDWR, 0666));
    unlink("/dev/shm/security-modes");
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    struct stat meta;
    need(stat(path, &meta) == 0);
    say("a terminal: %o, %d %d", meta.st_mode, (int)meta.st_uid, (int)meta.st_gid);
    close(master);
    need(chdir("..") == 0);
}

static int attempt(void *unused)
{
    (void)unused;
    all("open", 0);
    all("usual", 022);
    all("closed", 077);
    umask(0);
    need(chdir("set-group-id") == 0);
    all("inherits", 0);
    return 0;
}

int main(void)
{
    scratch();
    need(chmod(".", 0777) == 0 && mkdir("set-group-id", 0777) == 0 && chown("set-group-id", 0, 1000) == 0);
    need(chmod("set-group-id", 02777) == 0);
    as_nobody(attempt, NULL);
    return 0;
}
