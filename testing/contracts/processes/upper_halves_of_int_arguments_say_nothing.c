/*
 * syscall(2), System V ABI: an argument that the interface declares as int or unsigned int is the lower half of its
 * register; whatever a program leaves in the upper half changes nothing.
 */
#include "contract.h"
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#define UP(value) (0xabcd00000000UL | (unsigned int)(value))
#define TRY(name, ...) (errno = 0, show_outcome(#name, syscall(SYS_##name, __VA_ARGS__)))

static char text[64];
static int file;

static void descriptors(void)
{
    int pair[2], other;
    struct pollfd one = { .fd = file, .events = POLLIN };
    struct epoll_event event = { .events = EPOLLIN };
    struct iovec piece = { text, 1 };
    section("descriptors");
    TRY(read, UP(file), text, 1L);
    TRY(readv, UP(file), &piece, 1L);
    TRY(lseek, UP(file), 0L, UP(SEEK_SET));
    TRY(fcntl, UP(file), UP(F_GETFD), 0L);
    TRY(fcntl, UP(file), UP(F_DUPFD), UP(60));
    TRY(fcntl, UP(file), UP(F_SETFD), UP(FD_CLOEXEC));
    TRY(fcntl, UP(file), UP(F_SETFL), UP(O_APPEND));
    TRY(fcntl, UP(file), UP(F_SETOWN), UP(0));
    TRY(fcntl, UP(file), UP(F_SETSIG), UP(0));
    TRY(ioctl, UP(file), UP(FIONREAD), pair);
    TRY(flock, UP(file), UP(LOCK_EX));
    TRY(dup3, UP(file), UP(50), UP(O_CLOEXEC));
    TRY(close, UP(50));
    TRY(close_range, UP(200), UP(300), UP(0));
    TRY(pipe2, pair, UP(O_NONBLOCK));
    TRY(poll, &one, UP(1), UP(0));
    TRY(fallocate, UP(file), UP(0), 0L, 1L);
    TRY(fadvise64, UP(file), 0L, 0L, UP(POSIX_FADV_DONTNEED));
    TRY(sync_file_range, UP(file), 0L, 0L, UP(0));
    TRY(copy_file_range, UP(file), NULL, UP(file), NULL, 0L, UP(0));
    TRY(memfd_create, "name", UP(0));
    TRY(eventfd2, UP(3), UP(EFD_NONBLOCK));
    TRY(epoll_create1, UP(EPOLL_CLOEXEC));
    need((other = epoll_create1(0)) != -1);
    TRY(epoll_ctl, UP(other), UP(EPOLL_CTL_ADD), UP(pair[0]), &event);
    TRY(epoll_wait, UP(other), &event, UP(1), UP(0));
    TRY(epoll_pwait, UP(other), &event, UP(1), UP(0), NULL, 8L);
    need((other = timerfd_create(CLOCK_MONOTONIC, 0)) != -1);
    struct itimerspec when = { { 0, 0 }, { 0, 0 } };
    TRY(timerfd_create, UP(CLOCK_MONOTONIC), UP(TFD_NONBLOCK));
    TRY(timerfd_settime, UP(other), UP(0), &when, NULL);
    unsigned long set = 1 << (SIGUSR1 - 1);
    TRY(signalfd4, UP(-1), &set, 8L, UP(SFD_NONBLOCK));
}

static void names(void)
{
    struct stat meta;
    char buffer[256];
    section("names");
    TRY(openat, UP(AT_FDCWD), "file", UP(O_RDONLY), UP(0));
    TRY(open, "file", UP(O_RDONLY), UP(0));
    TRY(newfstatat, UP(AT_FDCWD), "file", &meta, UP(0));
    TRY(statx, UP(AT_FDCWD), "file", UP(0), UP(0x7ff), buffer);
    TRY(access, "file", UP(R_OK));
    TRY(faccessat, UP(AT_FDCWD), "file", UP(R_OK));
    TRY(faccessat2, UP(AT_FDCWD), "file", UP(R_OK), UP(0));
    TRY(chmod, "file", UP(0644));
    TRY(fchown, UP(file), UP(0), UP(-1));
    TRY(mkdirat, UP(AT_FDCWD), "folder", UP(0755));
    TRY(mknodat, UP(AT_FDCWD), "fifo", UP(S_IFIFO | 0644), UP(0));
    TRY(linkat, UP(AT_FDCWD), "file", UP(AT_FDCWD), "link", UP(0));
    TRY(renameat2, UP(AT_FDCWD), "link", UP(AT_FDCWD), "other", UP(1));
    TRY(unlinkat, UP(AT_FDCWD), "other", UP(0));
    TRY(unlinkat, UP(AT_FDCWD), "folder", UP(AT_REMOVEDIR));
    TRY(readlinkat, UP(AT_FDCWD), "file", buffer, UP(16));
    TRY(utimensat, UP(AT_FDCWD), "file", NULL, UP(0));
    TRY(fsetxattr, UP(file), "user.x", "y", 1L, UP(9));
    TRY(umask, UP(022));
    TRY(execveat, UP(AT_FDCWD), "missing", NULL, NULL, UP(0));
    TRY(umount2, "missing", UP(0));
}

static void sockets(void)
{
    int pair[2], value = 1;
    unsigned int size = sizeof value;
    section("sockets");
    TRY(socket, UP(AF_UNIX), UP(SOCK_STREAM | SOCK_NONBLOCK), UP(0));
    TRY(socketpair, UP(AF_UNIX), UP(SOCK_STREAM), UP(0), pair);
    TRY(sendto, UP(pair[0]), "abc", 3L, UP(MSG_DONTWAIT), NULL, UP(0));
    TRY(recvfrom, UP(pair[1]), text, 3L, UP(MSG_DONTWAIT), NULL, NULL);
    struct iovec piece = { text, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
    TRY(sendmsg, UP(pair[0]), &message, UP(MSG_DONTWAIT));
    TRY(recvmsg, UP(pair[1]), &message, UP(MSG_DONTWAIT));
    TRY(recvmmsg, UP(pair[1]), &message, UP(0), UP(0), NULL);
    TRY(setsockopt, UP(pair[0]), UP(SOL_SOCKET), UP(SO_PASSCRED), &value, UP(4));
    TRY(getsockopt, UP(pair[0]), UP(SOL_SOCKET), UP(SO_PASSCRED), &value, &size);
    TRY(shutdown, UP(pair[0]), UP(SHUT_WR));
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    unsigned short family = AF_UNIX;
    TRY(bind, UP(listener), &family, UP(2));
    TRY(listen, UP(listener), UP(3));
    TRY(accept4, UP(listener), NULL, NULL, UP(SOCK_CLOEXEC));
}

static void processes(void)
{
    siginfo_t info;
    int pidfd = syscall(SYS_pidfd_open, getpid(), 0), status, word = 0;
    unsigned long set = 0, cpus[16];
    struct rlimit limits;
    struct rusage usage;
    struct itimerval timer;
    struct timespec now = { 0 };
    section("processes");
    TRY(kill, UP(getpid()), UP(0));
    TRY(tgkill, UP(getpid()), UP(getpid()), UP(0));
    TRY(tkill, UP(getpid()), UP(0));
    TRY(pidfd_open, UP(getpid()), UP(0));
    TRY(pidfd_send_signal, UP(pidfd), UP(0), NULL, UP(0));
    TRY(wait4, UP(-1), &status, UP(WNOHANG), NULL);
    TRY(waitid, UP(P_ALL), UP(0), &info, UP(WEXITED | WNOHANG), NULL);
    TRY(setpgid, UP(0), UP(0));
    TRY(getpgid, UP(0));
    TRY(getsid, UP(0));
    TRY(setuid, UP(0));
    TRY(setresgid, UP(0), UP(-1), UP(0));
    TRY(getgroups, UP(0), NULL);
    TRY(getrlimit, UP(RLIMIT_NOFILE), &limits);
    TRY(prlimit64, UP(0), UP(RLIMIT_NOFILE), NULL, &limits);
    TRY(getrusage, UP(RUSAGE_SELF), &usage);
    TRY(getpriority, UP(PRIO_PROCESS), UP(0));
    TRY(sched_getscheduler, UP(0));
    TRY(sched_getaffinity, UP(0), UP(sizeof cpus), cpus);
    TRY(sched_get_priority_max, UP(SCHED_FIFO));
    TRY(prctl, UP(PR_GET_DUMPABLE), 0L, 0L, 0L, 0L);
    TRY(personality, UP(-1));
    TRY(rt_sigprocmask, UP(SIG_BLOCK), &set, NULL, 8L);
    TRY(rt_sigaction, UP(SIGUSR1), NULL, NULL, 8L);
    TRY(getitimer, UP(ITIMER_REAL), &timer);
    TRY(clock_gettime, UP(CLOCK_MONOTONIC), &now);
    now = (struct timespec){ 0 };
    TRY(clock_nanosleep, UP(CLOCK_MONOTONIC), UP(0), &now, NULL);
    TRY(futex, &word, UP(FUTEX_WAKE), UP(1), NULL, NULL, UP(0));
    TRY(getrandom, text, 8L, UP(0));
}

static void memory(void)
{
    char *pages = fresh_pages(2);
    section("memory");
    TRY(madvise, pages, PAGE, UP(MADV_NORMAL));
    TRY(msync, pages, PAGE, UP(MS_ASYNC));
    TRY(mlock2, pages, PAGE, UP(1));
    TRY(mlockall, UP(MCL_FUTURE));
    TRY(munlockall, 0L);
    TRY(membarrier, UP(0), UP(0), UP(0));
    TRY(mprotect, pages, PAGE, UP(PROT_READ));
    TRY(mremap, pages, PAGE, PAGE, UP(0), 0L);
}

int main(void)
{
    scratch();
    put_file("file", "0123456789", 0644);
    need((file = open("file", O_RDWR)) != -1);
    descriptors();
    names();
    sockets();
    processes();
    memory();
    return 0;
}
