/*
 * proc(5), /proc/PID/fd: opening a descriptor's link opens the file again with the caller's own rights: not more than
 * its mode grants, and not at all where there is no file to open.
 */
#include "security.h"
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static int given[16];
static const char *const names[16] = {
    "eventfd", "epoll", "timerfd", "signalfd", "pidfd", "socket", "pipe, reading", "pipe, writing", "memfd", "queue",
    "read-only file", "write-only file", "directory", "O_PATH of a file", "deleted file", "O_TMPFILE",
};

static void reopen(void)
{
    char path[64];
    static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR };
    for (size_t at = 0; at < COUNT_OF(given); at++)
        for (size_t mode = 0; mode < COUNT_OF(modes); mode++) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", given[at]);
            int fd = open(path, modes[mode] | O_NONBLOCK);
            say("%s, %zu: %s", names[at], mode, fd == -1 ? errno_name(errno) : "opened");
            if (fd != -1)
                close(fd);
        }
    for (size_t at = 0; at < COUNT_OF(given); at++) {
        say("%s: fchmod %s", names[at], fchmod(given[at], 0777) == -1 ? errno_name(errno) : "ok");
        say("%s: fchown %s", names[at], fchown(given[at], -1, 0) == -1 ? errno_name(errno) : "ok");
        say("%s: futimens %s", names[at], futimens(given[at], NULL) == -1 ? errno_name(errno) : "ok");
    }
}

static int attempt(void *unused)
{
    reopen();
    return unused != NULL;
}

int main(void)
{
    sigset_t none;
    int ends[2], pair[2];
    sigemptyset(&none);
    scratch();
    put_file("file", "text", 0600);
    put_file("gone", "text", 0600);
    need(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    given[0] = eventfd(0, 0), given[1] = epoll_create1(0), given[2] = timerfd_create(CLOCK_MONOTONIC, 0);
    given[3] = signalfd(-1, &none, 0), given[4] = syscall(SYS_pidfd_open, getpid(), 0), given[5] = pair[0];
    given[6] = ends[0], given[7] = ends[1], given[8] = memfd_create("x", 0);
    given[9] = syscall(SYS_mq_open, "reopened", O_CREAT | O_RDWR, 0600, NULL);
    given[10] = open("file", O_RDONLY), given[11] = open("file", O_WRONLY), given[12] = open(".", O_RDONLY);
    given[13] = open("file", O_PATH), given[14] = open("gone", O_RDONLY);
    given[15] = open(".", O_TMPFILE | O_RDWR, 0600);
    for (size_t at = 0; at < COUNT_OF(given); at++)
        need(given[at] != -1);
    syscall(SYS_mq_unlink, "reopened");
    need(unlink("gone") == 0);
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
