/*
 * proc_sys_fs(5): /proc/sys/fs/file-max bounds the open descriptions of all, for users without privilege: each call
 * that makes one is ENFILE, has done nothing else, and what shares a description goes on. file-nr counts them.
 */
#include "../security/security.h"
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#define MOST "/proc/sys/fs/file-max"

/* Far more than the processors of a small machine may have counted without telling. */
enum { FILES = 300 };

static int listener, master;

static long open_files(void)
{
    char text[64];
    need(get_file("/proc/sys/fs/file-nr", text, sizeof text) > 0);
    return atol(text);
}

static int set_most(const char *text)
{
    int fd = open(MOST, O_WRONLY);
    int done = fd == -1 ? -1 : (int)write(fd, text, strlen(text));
    int error = errno;
    close(fd);
    errno = error;
    return done;
}

static int tries(void *unused)
{
    int ends[2], pidfd;
    sigset_t none;
    char *program[] = { "self", NULL };
    (void)unused;
    need(sigemptyset(&none) == 0);
    OUTCOME(open("kept", O_RDONLY));
    OUTCOME(open("kept", O_PATH));
    OUTCOME(open("kept", O_WRONLY | O_TRUNC));
    OUTCOME(open("made", O_WRONLY | O_CREAT, 0600));
    OUTCOME(open(".", O_RDWR | O_TMPFILE, 0600));
    OUTCOME(open("/dev/ptmx", O_RDWR | O_NOCTTY));
    OUTCOME(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    OUTCOME(pipe(ends));
    OUTCOME(socket(AF_UNIX, SOCK_STREAM, 0));
    OUTCOME(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    OUTCOME(accept(listener, NULL, NULL));
    OUTCOME(eventfd(0, 0));
    OUTCOME(epoll_create1(0));
    OUTCOME(timerfd_create(CLOCK_MONOTONIC, 0));
    OUTCOME(signalfd(-1, &none, 0));
    OUTCOME(syscall(SYS_memfd_create, "none", 0));
    OUTCOME(syscall(SYS_pidfd_open, getpid(), 0));
    OUTCOME(syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, 0));
    OUTCOME(execv("/proc/self/exe", program));
    OUTCOME(dup(1));
    OUTCOME(fcntl(1, F_DUPFD, 0));
    return 0;
}

static int opens(void *unused)
{
    (void)unused;
    OUTCOME(open("kept", O_RDONLY));
    OUTCOME(open(MOST, O_WRONLY));
    return 0;
}

int main(void)
{
    struct sockaddr_un name = { AF_UNIX, "listens" };
    struct stat meta;
    char before[64];
    int some[FILES], unlocked = 0;
    scratch();
    need(chmod(".", 0777) == 0);
    put_file("kept", "text", 0666);
    need(chmod("kept", 0666) == 0 && get_file(MOST, before, sizeof before) > 0);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    need((listener = socket(AF_UNIX, SOCK_STREAM, 0)) != -1 && client != -1);
    need(bind(listener, (void *)&name, sizeof name) == 0 && listen(listener, 1) == 0);
    need(connect(client, (void *)&name, sizeof name) == 0);
    need((master = open("/dev/ptmx", O_RDWR | O_NOCTTY)) != -1 && ioctl(master, TIOCSPTLCK, &unlocked) == 0);

    section("what is open is counted");
    long open_before = open_files();
    for (int one = 0; one < FILES; one++)
        need((some[one] = eventfd(0, 0)) != -1 && dup(some[one]) != -1);
    check(labs(open_files() - open_before - FILES) < FILES / 2, "open ones count once, whatever their numbers");
    need(syscall(SYS_close_range, some[0], ~0U, 0) == 0);
    check(labs(open_files() - open_before) < FILES / 2, "closed ones do not");

    section("none may be opened");
    RESULT(set_most("0"));
    show_status("a user", as_nobody(tries, NULL));
    OUTCOME(open("kept", O_RDONLY));
    RESULT(set_most(before) > 0);

    section("what was refused has done nothing");
    need(stat("kept", &meta) == 0);
    show("bytes of the file that was not cut", meta.st_size);
    RESULT(access("made", F_OK));
    OUTCOME(accept4(listener, NULL, NULL, SOCK_NONBLOCK));

    section("what can be set");
    RESULT(set_most("9223372036854775808"));
    RESULT(set_most("text"));
    RESULT(set_most(before) > 0);
    show_status("a user", as_nobody(opens, NULL));
    return 0;
}
