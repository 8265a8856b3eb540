/*
 * Descriptors of every kind. What cannot be made stays -1: that is a kind too.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>

static const char *const names[DESCRIPTORS] = {
    "file", "passwd", "dir", "pipe_r", "pipe_w", "pipe_nb_r", "pipe_nb_w", "eventfd", "eventfd_nb", "timerfd",
    "signalfd",
    "epoll", "epoll2", "stream", "stream2", "dgram", "dgram2", "seqpacket", "seqpacket2", "listener", "ptmx", "pts",
    "memfd",
    "memfd_sealed", "mqueue", "proc_maps", "proc_mem", "dev_zero", "dev_null", "urandom", "pidfd", "o_path", "inotify",
    "tcp", "udp", "closed", "dev_full", "file_append", "fifo", "proc_status",
    "made0", "made1", "made2", "made3", "made4", "made5", "made6", "made7",
};

const char *object_name(int slot)
{
    return names[slot];
}

static int open_(const char *path, int flags)
{
    return (int)raw(SYS_openat, AT_FDCWD, path, flags, 0644);
}

static void pair(int slot, int type)
{
    raw(SYS_socketpair, AF_UNIX, type, 0, &program.fds[slot]);
}

/* One listener a program, by a name without a file. */
static int listener(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    name.sun_path[1] = 'f';
    memcpy(name.sun_path + 2, &program.number, sizeof program.number);
    int fd = (int)raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    raw(SYS_bind, fd, &name, 12);
    raw(SYS_listen, fd, 4);
    return fd;
}

static void terminals(int *master, int *slave)
{
    *master = open_("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
    int unlocked = 0;
    raw(SYS_ioctl, *master, TIOCSPTLCK, &unlocked);
    *slave = (int)raw(SYS_ioctl, *master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK);
}

static void watch_some(int epoll, int other, int until)
{
    for (int slot = 3; slot < until; slot += 2) {
        struct epoll_event event = { .events = EPOLLIN | (slot % 4 == 3 ? EPOLLET : 0), .data.u32 = (uint32_t)slot };
        raw(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, program.fds[slot], &event);
    }
    struct epoll_event event = { .events = EPOLLIN };
    raw(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, other, &event);
}

void make_objects(void)
{
    int *fds = program.fds;
    uint64_t signals = 1ULL << 9 | 1ULL << 11 | 1ULL << 33;
    for (int slot = 0; slot < DESCRIPTORS; slot++)
        fds[slot] = -1;
    fds[0] = open_("a", O_RDWR | O_CREAT);
    fds[1] = open_("/etc/passwd", O_RDONLY);
    fds[2] = open_(".", O_RDONLY | O_DIRECTORY);
    raw(SYS_pipe2, &fds[3], 0);
    raw(SYS_pipe2, &fds[5], O_NONBLOCK);
    fds[7] = (int)raw(SYS_eventfd2, 1, 0);
    fds[8] = (int)raw(SYS_eventfd2, 3, EFD_NONBLOCK | EFD_SEMAPHORE);
    fds[9] = (int)raw(SYS_timerfd_create, 1, TFD_NONBLOCK);
    fds[10] = (int)raw(SYS_signalfd4, -1, &signals, 8, SFD_NONBLOCK);
    fds[11] = (int)raw(SYS_epoll_create1, 0);
    fds[12] = (int)raw(SYS_epoll_create1, 0);
    pair(13, SOCK_STREAM);
    pair(15, SOCK_DGRAM | SOCK_NONBLOCK);
    pair(17, SOCK_SEQPACKET | SOCK_NONBLOCK);
    fds[19] = listener();
    terminals(&fds[20], &fds[21]);
    fds[22] = (int)raw(SYS_memfd_create, "m", MFD_ALLOW_SEALING);
    raw(SYS_ftruncate, fds[22], 8 * PAGE);
    fds[23] = (int)raw(SYS_memfd_create, "s", MFD_ALLOW_SEALING);
    raw(SYS_ftruncate, fds[23], 2 * PAGE);
    raw(SYS_fcntl, fds[23], 1033 /* F_ADD_SEALS */, 0xe);
    struct mq_attr queue = { .mq_maxmsg = 4, .mq_msgsize = 64 };
    fds[24] = (int)raw(SYS_mq_open, "fuzz-a", O_RDWR | O_CREAT | O_NONBLOCK, 0600, &queue);
    fds[25] = open_("/proc/self/maps", O_RDONLY);
    fds[26] = open_("/proc/self/mem", O_RDWR);
    fds[27] = open_("/dev/zero", O_RDWR);
    fds[28] = open_("/dev/null", O_RDWR);
    fds[29] = open_("/dev/urandom", O_RDONLY);
    fds[30] = (int)raw(SYS_pidfd_open, own_pid(), 0);
    fds[31] = open_("/etc/passwd", O_PATH);
    fds[32] = (int)raw(SYS_inotify_init1, IN_NONBLOCK);
    fds[33] = (int)raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    fds[34] = (int)raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    fds[35] = 126;
    fds[36] = open_("/dev/full", O_RDWR);
    fds[37] = open_("a", O_RDWR | O_APPEND);
    raw(SYS_mknodat, AT_FDCWD, "fifo", 010644, 0);
    fds[38] = open_("fifo", O_RDWR | O_NONBLOCK);
    fds[39] = open_("/proc/self/status", O_RDONLY);
    watch_some(fds[11], fds[12], 20);
    watch_some(fds[12], fds[9], 8);
}
