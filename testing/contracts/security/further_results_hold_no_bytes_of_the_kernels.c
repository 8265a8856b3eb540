/*
 * Padding and unused fields of what calls store hold nothing of the kernel's: structures of statfs(2),
 * capget(2), control messages (cmsg(3)), clocks, timers and limits. The method is that of
 * results_hold_no_bytes_of_the_kernels.
 */
#include "security.h"
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/un.h>

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
    int ends[2];
    need(pipe(ends) == 0);
    STORED("statfs of /proc", statfs("/proc", buffer));
    padding("statfs of /proc", 88, 119);
    STORED("fstatfs of a pipe", fstatfs(ends[0], buffer));
    STORED("fstat of a pipe", syscall(SYS_fstat, ends[0], buffer));
    padding("fstat of a pipe", 36, 39);
    padding("fstat of a pipe", 120, 143);
    STORED("F_GETOWN_EX", fcntl(ends[0], F_GETOWN_EX, buffer));
    STORED("FIONREAD", ioctl(ends[0], FIONREAD, buffer));
}

static void processes(void)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    struct itimerval never = { 0 };
    int timer = 0;
    STORED("capget", syscall(SYS_capget, &header, buffer));
    STORED("prlimit", syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, buffer));
    STORED("getcpu", syscall(SYS_getcpu, buffer, NULL, NULL));
    STORED("clock_getres", syscall(SYS_clock_getres, CLOCK_MONOTONIC, buffer));
    STORED("timer_create", syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, buffer));
    memcpy(&timer, one, sizeof timer);
    STORED("timer_gettime", syscall(SYS_timer_gettime, timer, buffer));
    STORED("setitimer", syscall(SYS_setitimer, ITIMER_REAL, &never, buffer));
    STORED("rt_sigaction", syscall(SYS_rt_sigaction, SIGUSR2, NULL, buffer, 8));
    STORED("rt_sigprocmask", syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, buffer, 8));
    STORED("sched_getparam", syscall(SYS_sched_getparam, 0, buffer));
    STORED("PR_GET_PDEATHSIG", prctl(PR_GET_PDEATHSIG, buffer));
    STORED("wait4", (spawn(nothing, NULL), syscall(SYS_wait4, -1, NULL, 0, buffer)));
    STORED("getresuid", syscall(SYS_getresuid, buffer, (char *)buffer + 8, (char *)buffer + 16));
}

static void sockets(void)
{
    int pair[2];
    socklen_t length;
    char text[8];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    STORED("SO_LINGER", (length = 64, getsockopt(pair[0], SOL_SOCKET, SO_LINGER, buffer, &length)));
    STORED("getpeername", (length = 64, getpeername(pair[0], buffer, &length)));
    show("its length", length);
    struct iovec data = { text, sizeof text };
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
    struct msghdr sent = { .msg_iov = &(struct iovec){ "a", 1 }, .msg_iovlen = 1, .msg_control = &control,
        .msg_controllen = sizeof control };
    control.head = (struct cmsghdr){ CMSG_LEN(sizeof(int)), 0, SOL_SOCKET, SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.head), &pair[0], sizeof(int));
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
    STORED("a file that arrives", (message.msg_control = buffer, message.msg_controllen = 64,
        sendmsg(pair[1], &sent, 0), recvmsg(pair[0], &message, 0)));
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    STORED("TCGETS2", ioctl(master, 0x802c542a, buffer));
}

static int attempt(void *unused)
{
    (void)unused;
    files();
    processes();
    sockets();
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "x", 0644);
    as_nobody(attempt, NULL);
    return 0;
}
