/*
 * The structures of calls have padding and unused fields: what is stored there is zero or left as it was, and nothing
 * is stored behind the structure. Each call fills two buffers that held different bytes; what differs afterwards was
 * not stored.
 */
#include "security.h"
#include <dirent.h>
#include <linux/stat.h>
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <termios.h>

#define ROOM 1024

static unsigned char one[ROOM], other[ROOM];

/* Prints which bytes a call stored, given what two runs of it left. Only where is told, not what. */
static void tell_stored(const char *name)
{
    char line[256];
    int length = snprintf(line, sizeof line, "%s:", name);
    for (int at = 0, from = -1; at <= ROOM; at++) {
        int stored = at < ROOM && !(one[at] == 0xaa && other[at] == 0x55);
        if (stored && from == -1)
            from = at;
        if (!stored && from != -1) {
            length += snprintf(line + length, sizeof line - length, " %d-%d", from, at - 1);
            from = -1;
        }
    }
    say("%s", line);
}

/* The bytes from..to are padding: zero wherever they were stored. */
static void padding(const char *name, int from, int to)
{
    int bad = 0;
    for (int at = from; at <= to; at++)
        bad += !(one[at] == 0xaa && other[at] == 0x55) && (one[at] || other[at]);
    say("%s: %d bytes of padding are not zero", name, bad);
}

#define FILLED(call) do { \
        memset(one, 0xaa, ROOM); memset(other, 0x55, ROOM); \
        void *buffer = one; need((call) != -1); buffer = other; need((call) != -1); \
    } while (0)
#define STORED(name, call) do { FILLED(call); tell_stored(name); } while (0)

static int nothing(void *unused) { return unused != NULL; }

static void files(void)
{
    int directory = open(".", O_RDONLY | O_DIRECTORY);
    STORED("stat", syscall(SYS_stat, "file", buffer));
    padding("stat", 36, 39);
    padding("stat", 120, 143);
    STORED("statx", syscall(SYS_statx, AT_FDCWD, "file", 0, STATX_BASIC_STATS, buffer));
    padding("statx", 30, 31);
    padding("statx", 76, 79);
    padding("statx", 108, 111);
    padding("statx", 160, 255);
    STORED("statfs", statfs(".", buffer));
    padding("statfs", 88, 119);
    FILLED((lseek(directory, 0, SEEK_SET), syscall(SYS_getdents64, directory, buffer, 48)));
    padding("getdents", 48, ROOM - 1);
    padding("getdents", 21, 23);
    padding("getdents", 46, 47);
    struct flock lock = { .l_type = F_WRLCK };
    STORED("F_GETLK", (memcpy(buffer, &lock, sizeof lock), fcntl(directory, F_GETLK, buffer)));
}

static void processes(void)
{
    STORED("getrusage", getrusage(RUSAGE_SELF, buffer));
    STORED("times", syscall(SYS_times, buffer));
    STORED("sysinfo", sysinfo(buffer));
    padding("sysinfo", 84, 87);
    padding("sysinfo", 108, 111);
    STORED("uname", uname(buffer));
    for (int field = 0; field < 6; field++) {
        int end = 65 * field + strlen((char *)one + 65 * field);
        padding("uname", end, 65 * field + 64);
    }
    STORED("getitimer", syscall(SYS_getitimer, ITIMER_REAL, buffer));
    STORED("sigaltstack", syscall(SYS_sigaltstack, NULL, buffer));
    padding("sigaltstack", 12, 15);
    STORED("sched_getattr", syscall(SYS_sched_getattr, 0, buffer, 56, 0));
    STORED("sched_rr_get_interval", syscall(SYS_sched_rr_get_interval, 0, buffer));
    STORED("PR_GET_NAME", prctl(PR_GET_NAME, buffer));
    STORED("rt_sigpending", syscall(SYS_rt_sigpending, buffer, 8));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    STORED("rt_sigtimedwait", (raise(SIGUSR1), syscall(SYS_rt_sigtimedwait, &set, buffer, NULL, 8)));
    padding("rt_sigtimedwait", 12, 15);
    padding("rt_sigtimedwait", 24, 127);
    STORED("waitid", (spawn(nothing, NULL), syscall(SYS_waitid, P_ALL, 0, buffer, WEXITED, NULL)));
    padding("waitid", 12, 15);
    padding("waitid", 28, 31);
    check(((siginfo_t *)one)->si_uid == NOBODY, "waitid names the child's user");
}

static void descriptors(void)
{
    int pair[2], epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    socklen_t length;
    sigset_t set;
    char text[8];
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    struct epoll_event event = { .events = EPOLLOUT, .data.u64 = 0x0101010101010101 };
    need(epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event) == 0);
    STORED("epoll_wait", epoll_wait(epoll, buffer, 4, 0));
    STORED("timerfd_gettime", timerfd_gettime(timer, buffer));
    STORED("getsockname", (length = 64, getsockname(pair[0], buffer, &length)));
    show("its length", length);
    STORED("SO_PEERCRED", (length = 64, getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, buffer, &length)));
    show("its length", length);
    STORED("SO_RCVTIMEO", (length = 64, getsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, buffer, &length)));
    STORED("SO_TYPE", (length = 2, getsockopt(pair[0], SOL_SOCKET, SO_TYPE, buffer, &length)));
    STORED("recvfrom", (send(pair[1], "abc", 3, 0), length = 64,
        recvfrom(pair[0], text, sizeof text, 0, buffer, &length)));
    show("its length", length);
    int on = 1;
    need(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    struct iovec data = { text, sizeof text };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
    STORED("credentials", (message.msg_control = buffer, message.msg_controllen = 64, send(pair[1], "abc", 3, 0),
        recvmsg(pair[0], &message, 0)));
    padding("credentials", 28, 31);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    int signals = signalfd(-1, &set, 0);
    STORED("signalfd", (raise(SIGUSR1), read(signals, buffer, 256)));
    padding("signalfd", 20, 39);
    padding("signalfd", 44, 127);
    long queue = syscall(SYS_mq_open, "security-padding", O_CREAT | O_RDWR, 0600, NULL);
    STORED("mq_getattr", syscall(SYS_mq_getsetattr, queue, NULL, buffer));
    padding("mq_getattr", 32, 63);
    syscall(SYS_mq_unlink, "security-padding");
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    STORED("TCGETS", ioctl(master, TCGETS, buffer));
    STORED("TIOCGWINSZ", ioctl(master, TIOCGWINSZ, buffer));
}

static int attempt(void *unused)
{
    (void)unused;
    files();
    processes();
    descriptors();
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "x", 0644);
    as_nobody(attempt, NULL);
    return 0;
}
