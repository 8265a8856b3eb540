/*
 * unix(7), epoll(7), path_resolution(7): what a program can nest without a limit comes apart without one, in memory
 * that does not grow with the depth: sockets in sockets, directories in directories, epolls in epolls.
 * contract: timeout=40
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Sends `carried` through a new pair, whose reading end then is all that holds it. */
static int wrap(int carried, int kind)
{
    int pair[2];
    char byte = 'x', control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
        .msg_controllen = sizeof control };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (socketpair(AF_UNIX, kind, 0, pair) != 0)
        return -1;
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &carried, sizeof carried);
    ssize_t sent = sendmsg(pair[1], &message, 0);
    close(pair[1]);
    close(carried);
    if (sent != 1) {
        close(pair[0]);
        return -1;
    }
    return pair[0];
}

static int sockets(void *kind)
{
    int ends[2];
    char byte;
    need(pipe(ends) == 0);
    int at = ends[1];
    for (int depth = 0; depth < 800; depth++)
        need((at = wrap(at, (int)(long)kind)) != -1);
    close(at);
    /* The innermost of all was the only writer. */
    need(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    ssize_t got = -1;
    for (int turn = 0; turn < 500 && got != 0; turn++) {
        got = read(ends[0], &byte, 1);
        sleep_ms(2);
    }
    show("the innermost is closed", got == 0);
    return 0;
}

static int directories(void *unused)
{
    (void)unused;
    scratch();
    int top = open(".", O_RDONLY | O_DIRECTORY), depth = 0;
    for (; depth < 3000; depth++)
        if (mkdir("d", 0755) != 0 || chdir("d") != 0)
            break;
    show("directories", depth);
    /* The working directory is the only thing that holds them once their names are gone from the top. */
    int bottom = open(".", O_RDONLY | O_DIRECTORY);
    need(bottom != -1);
    int removed = 0;
    for (; removed < 3000; removed++)
        if (chdir("..") != 0 || rmdir("d") != 0)
            break;
    show("removed", removed);
    need(fchdir(top) == 0);
    close(bottom);
    return 0;
}

/* Each link leads to the one before, the first to a program. */
static int links(void *unused)
{
    (void)unused;
    char name[16], before[16] = "/bin/true";
    scratch();
    for (int depth = 1; depth <= 41; depth++) {
        snprintf(name, sizeof name, "l%d", depth);
        need(symlink(before, name) == 0);
        strcpy(before, name);
    }
    struct stat meta;
    OUTCOME(stat("l38", &meta));
    OUTCOME(stat("l41", &meta));
    OUTCOME(open("l38", O_RDONLY));
    OUTCOME(open("l41", O_RDONLY | O_CREAT, 0600));
    OUTCOME(chmod("l41", 0600));
    OUTCOME(rename("l41", "l42"));
    pid_t child = fork();
    if (child == 0) {
        execl("l38", "true", NULL);
        _exit(9);
    }
    show_status("the program", reap(child));
    return 0;
}

static int epolls(void *unused)
{
    (void)unused;
    struct epoll_event event = { .events = EPOLLIN };
    int first = epoll_create1(0), at = first, deep = 0;
    /* From the top down each addition sees an empty set below. */
    for (; deep < 12; deep++) {
        int next = epoll_create1(0);
        need(next != -1);
        if (epoll_ctl(at, EPOLL_CTL_ADD, next, &event) != 0)
            break;
        at = next;
    }
    int ends[2];
    need(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    epoll_ctl(at, EPOLL_CTL_ADD, ends[0], &event);
    struct pollfd top = { .fd = first, .events = POLLIN };
    check(poll(&top, 1, 0) >= 0, "the top answers");
    check(epoll_ctl(at, EPOLL_CTL_ADD, first, &event) == -1 && errno == ELOOP, "a circle is refused");
    return 0;
}

static int wide(void *unused)
{
    (void)unused;
    /* Levels of sets that all watch all of the next: the paths through them are many, the sets are few. */
    enum { LEVELS = 4, WIDTH = 12 };
    int level[LEVELS][WIDTH];
    struct epoll_event event = { .events = EPOLLIN };
    for (int at = 0; at < LEVELS; at++)
        for (int set = 0; set < WIDTH; set++) {
            need((level[at][set] = epoll_create1(0)) != -1);
            for (int below = 0; at > 0 && below < WIDTH; below++)
                epoll_ctl(level[at][set], EPOLL_CTL_ADD, level[at - 1][below], &event);
        }
    int ends[2], refused = 0;
    need(pipe(ends) == 0);
    for (int set = 0; set < WIDTH; set++)
        refused += epoll_ctl(level[0][set], EPOLL_CTL_ADD, ends[0], &event) != 0 && errno == EINVAL;
    check(refused > 0, "a file that too many paths lead from is refused");
    need(write(ends[1], "x", 1) == 1);
    return 0;
}

int main(void)
{
    struct rlimit many = { 4096, 4096 };
    need(setrlimit(RLIMIT_NOFILE, &many) == 0);
    section("sockets in sockets");
    show_status("streams", in_child(sockets, (void *)SOCK_STREAM));
    show_status("datagrams", in_child(sockets, (void *)SOCK_DGRAM));
    section("directories in directories");
    show_status("child", in_child(directories, NULL));
    section("links to links");
    show_status("child", in_child(links, NULL));
    section("epolls in epolls");
    show_status("child", in_child(epolls, NULL));
    show_status("child", in_child(wide, NULL));
    return 0;
}
