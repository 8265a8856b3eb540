/*
 * close(2), dup(2), unix(7): threads that close, replace, duplicate and pass the descriptors of one table at once, and
 * fork and execute meanwhile, get each the descriptors it asked for: what a number stands for is what was put there.
 * contract: timeout=50
 */
#include "security.h"
#include <linux/close_range.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>

#define ROUNDS 300
#define OWN 100
#define SHARED 40

static volatile int stop;
static int marks[4], pair[2];
static struct stat known[4];

static int is_one_of_ours(int fd)
{
    struct stat meta;
    if (fstat(fd, &meta) == -1)
        return errno == EBADF;
    for (size_t at = 0; at < COUNT_OF(known); at++)
        if (meta.st_ino == known[at].st_ino && meta.st_dev == known[at].st_dev)
            return 1;
    return 0;
}

/* Each replacer owns numbers of its own, which none else touches: they always hold what was put there. */
static void *replacer(void *argument)
{
    size_t own = (size_t)argument;
    int base = OWN + 10 * own;
    long bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int mark = (round + own) % 4;
        struct stat meta;
        bad += dup2(marks[mark], base) != base;
        bad += fstat(base, &meta) != 0 || meta.st_ino != known[mark].st_ino;
        bad += dup3(base, base + 1, O_CLOEXEC) != base + 1;
        bad += fcntl(base + 1, F_GETFD) != FD_CLOEXEC;
        bad += syscall(SYS_close_range, base, base + 1, 0) != 0;
        bad += fcntl(base, F_GETFD) != -1 || errno != EBADF;
        /* These are everyone's: anything may be there, but only what someone put. */
        dup2(marks[mark], SHARED + round % 8);
        close(SHARED + (round + 3) % 8);
        bad += !is_one_of_ours(SHARED + (round + own) % 8);
    }
    return (void *)bad;
}

/* Sends shared numbers while others close them; receives and checks. */
static void *passer(void *unused)
{
    (void)unused;
    long bad = 0;
    for (int round = 0; !stop; round++) {
        char byte = 'x', room[CMSG_SPACE(2 * sizeof(int))];
        struct iovec data = { &byte, 1 };
        struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = room,
            .msg_controllen = sizeof room };
        memset(room, 0, sizeof room);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){ CMSG_LEN(2 * sizeof(int)), 0, SOL_SOCKET, SCM_RIGHTS };
        int numbers[2] = { SHARED + round % 8, SHARED + (round + 1) % 8 };
        memcpy(CMSG_DATA(head), numbers, sizeof numbers);
        if (sendmsg(pair[0], &message, MSG_DONTWAIT) == -1) {
            bad += errno != EBADF;
            continue;
        }
        message.msg_controllen = sizeof room;
        bad += recvmsg(pair[1], &message, MSG_DONTWAIT) != 1;
        head = CMSG_FIRSTHDR(&message);
        if (!head || head->cmsg_len != CMSG_LEN(2 * sizeof(int))) {
            bad++;
            continue;
        }
        memcpy(numbers, CMSG_DATA(head), sizeof numbers);
        bad += !is_one_of_ours(numbers[0]) || !is_one_of_ours(numbers[1]);
        bad += close(numbers[0]) != 0 || close(numbers[1]) != 0;
    }
    return (void *)bad;
}

/* Watches and locks descriptions whose last descriptor goes meanwhile. */
static void *watcher(void *unused)
{
    (void)unused;
    long bad = 0;
    int epoll = epoll_create1(0);
    for (int round = 0; !stop; round++) {
        struct epoll_event event = { .events = EPOLLIN }, found[4];
        int fd = SHARED + round % 8;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == -1)
            bad += errno != EBADF && errno != EPERM && errno != EEXIST;
        bad += epoll_wait(epoll, found, 4, 0) == -1;
        epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
        if (flock(fd, LOCK_EX | LOCK_NB) == -1)
            bad += errno != EBADF && errno != EWOULDBLOCK;
        struct flock lock = { .l_type = F_WRLCK };
        if (fcntl(fd, F_SETLK, &lock) == -1)
            bad += errno != EBADF && errno != EAGAIN && errno != EACCES && errno != EINVAL;
    }
    close(epoll);
    return (void *)bad;
}

static void *forker(void *unused)
{
    (void)unused;
    long bad = 0;
    for (int round = 0; !stop; round++) {
        pid_t child = fork();
        if (child == 0) {
            if (round % 2)
                execl("/proc/self/exe", "self", "child", NULL);
            if (unshare(CLONE_FILES) != 0 || syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_UNSHARE) != 0)
                _exit(1);
            _exit(open("/", O_RDONLY) != 3);
        }
        bad += child == -1 || reap(child) != 0;
    }
    return (void *)bad;
}

static int attack(void *unused)
{
    (void)unused;
    pthread_t threads[7];
    void *bad;
    for (size_t at = 0; at < 4; at++)
        need(pthread_create(&threads[at], NULL, replacer, (void *)at) == 0);
    need(pthread_create(&threads[4], NULL, passer, NULL) == 0);
    need(pthread_create(&threads[5], NULL, watcher, NULL) == 0);
    need(pthread_create(&threads[6], NULL, forker, NULL) == 0);
    for (size_t at = 0; at < 7; at++) {
        if (at == 4)
            stop = 1;
        need(pthread_join(threads[at], &bad) == 0);
        show("bad", (long)bad);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "child"))
        return 0;
    scratch();
    put_file("one", "1", 0666);
    put_file("two", "2", 0666);
    int pipe_ends[2];
    need(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    marks[0] = open("one", O_RDWR), marks[1] = open("two", O_RDWR), marks[2] = pipe_ends[0], marks[3] = pipe_ends[1];
    for (size_t at = 0; at < 4; at++)
        need(marks[at] != -1 && fstat(marks[at], &known[at]) == 0);
    show_status("attack", as_nobody(attack, NULL));
    return 0;
}
