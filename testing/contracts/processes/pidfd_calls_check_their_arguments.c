/*
 * pidfd_open(2), pidfd_send_signal(2), pidfd_getfd(2), waitid(2): which processes have a pidfd, what is refused,
 * and that a nonblocking pidfd makes waitid say EAGAIN.
 */
#include "contract.h"
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static pthread_barrier_t barrier;
static volatile pid_t tid;

static int pidfd_open(pid_t pid, unsigned flags) { return syscall(SYS_pidfd_open, pid, flags); }
static int send_signal(int fd, int number, siginfo_t *info, unsigned flags)
{
    return syscall(SYS_pidfd_send_signal, fd, number, info, flags);
}

static void *thread(void *unused)
{
    tid = gettid();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static int idle(void *unused)
{
    (void)unused;
    pause();
    return 0;
}

int main(void)
{
    pthread_t other;
    need(pthread_barrier_init(&barrier, NULL, 2) == 0 && pthread_create(&other, NULL, thread, NULL) == 0);
    pthread_barrier_wait(&barrier);
    section("pidfd_open");
    RESULT(pidfd_open(0, 0));
    RESULT(pidfd_open(-1, 0));
    RESULT(pidfd_open(0x3fffffff, 0));
    RESULT(pidfd_open(getpid(), 1));
    RESULT(pidfd_open(tid, 0));
    pthread_barrier_wait(&barrier);
    pthread_join(other, NULL);
    pid_t child = spawn(idle, NULL);
    int fd = pidfd_open(child, 0), waiting = pidfd_open(child, O_NONBLOCK);
    need(fd != -1 && waiting != -1);
    show("close on exec", fcntl(fd, F_GETFD) & FD_CLOEXEC);
    show("nonblocking", !!(fcntl(waiting, F_GETFL) & O_NONBLOCK));
    section("pidfd_send_signal");
    siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
    RESULT(send_signal(fd, 0, NULL, 0));
    RESULT(send_signal(fd, 0, NULL, 1));
    RESULT(send_signal(fd, 65, NULL, 0));
    RESULT(send_signal(fd, SIGUSR2, &info, 0));
    RESULT(send_signal(fd, 0, BAD_POINTER, 0));
    info.si_signo = 0;
    info.si_code = SI_TKILL;
    RESULT(send_signal(fd, 0, &info, 0));
    info.si_code = SI_USER;
    RESULT(send_signal(fd, 0, &info, 0));
    RESULT(send_signal(0, 0, NULL, 0));
    RESULT(send_signal(-1, 0, NULL, 0));
    section("pidfd_getfd");
    RESULT(syscall(SYS_pidfd_getfd, fd, 0, 1));
    RESULT(syscall(SYS_pidfd_getfd, fd, 999, 0));
    RESULT(syscall(SYS_pidfd_getfd, 0, 0, 0));
    OUTCOME(syscall(SYS_pidfd_getfd, fd, 1, 0));
    section("read, write, seek, truncate");
    char byte = 0;
    RESULT(read(fd, &byte, 1));
    RESULT(write(fd, &byte, 1));
    RESULT(lseek(fd, 0, SEEK_SET));
    RESULT(ftruncate(fd, 0));
    section("waitid");
    siginfo_t found = { 0 };
    RESULT(waitid(P_PIDFD, waiting, &found, WEXITED));
    RESULT(waitid(P_PIDFD, waiting, &found, WEXITED | WNOHANG));
    RESULT(waitid(P_PIDFD, -1, &found, WEXITED));
    RESULT(waitid(P_PIDFD, 999, &found, WEXITED));
    RESULT(waitid(P_PIDFD, 0, &found, WEXITED));
    struct pollfd one = { .fd = fd, .events = POLLIN };
    RESULT(poll(&one, 1, 0));
    RESULT(send_signal(fd, SIGKILL, NULL, 0));
    RESULT(poll(&one, 1, 2000));
    show("readable", one.revents);
    RESULT(waitid(P_PIDFD, waiting, &found, WEXITED));
    show("killed by", found.si_status);
    RESULT(send_signal(fd, 0, NULL, 0));
    RESULT(waitid(P_PIDFD, fd, &found, WEXITED));
    RESULT(syscall(SYS_pidfd_getfd, fd, 0, 0));
    return 0;
}
