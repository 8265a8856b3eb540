/*
 * kcmp(2): 0 for a shared thing; else 1 or 2, the other way round for the arguments the other way round; descriptors
 * are compared by their open files; who may not look into both gets EPERM.
 */
#include "contract.h"
#include <linux/kcmp.h>
#include <sys/epoll.h>

static long compare(pid_t one, pid_t other, int type, long a, long b)
{
    return syscall(SYS_kcmp, one, other, type, a, b);
}

static void both(const char *what, pid_t one, pid_t other, int type, long a, long b)
{
    long there = compare(one, other, type, a, b);
    int error = errno;
    long back = compare(other, one, type, b, a);
    if (there == -1)
        say("%s: %s", what, errno_name(error));
    else
        say("%s: %s, %s", what, there == 0 ? "same" : there < 3 ? "different" : "unordered",
            there + back == (there ? 3 : 0) ? "consistent" : "INCONSISTENT");
}

static volatile int go;

static void all_kinds(pid_t other)
{
    static const struct { const char *name; int type; } kinds[] = {
        { "memory", KCMP_VM }, { "files", KCMP_FILES }, { "places", KCMP_FS }, { "handlers", KCMP_SIGHAND },
        { "io", KCMP_IO }, { "semaphores", KCMP_SYSVSEM },
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        both(kinds[i].name, getpid(), other, kinds[i].type, 0, 0);
}

static void *thread(void *tid)
{
    *(pid_t *)tid = gettid();
    go = 1;
    while (go)
        sleep_ms(1);
    return NULL;
}

static int stranger(void *pid)
{
    need(setresgid(65461, 65461, 65461) == 0 && setresuid(65461, 65461, 65461) == 0);
    RESULT(compare(getpid(), *(pid_t *)pid, KCMP_VM, 0, 0));
    RESULT(compare(*(pid_t *)pid, getpid(), KCMP_VM, 0, 0));
    RESULT(compare(getpid(), getpid(), KCMP_VM, 0, 0));
    RESULT(compare(getpid(), *(pid_t *)pid, 99, 0, 0));
    return 0;
}

static int sleeper(void *unused)
{
    (void)unused;
    sleep_ms(5000);
    return 0;
}

int main(void)
{
    int fd = open("/dev/null", O_RDONLY), copy = dup(fd), other = open("/dev/null", O_RDONLY);
    pid_t own = getpid(), child, tid = 0;
    section("itself");
    all_kinds(own);
    both("a copy", own, own, KCMP_FILE, fd, copy);
    both("opened twice", own, own, KCMP_FILE, fd, other);
    RESULT(compare(own, own, KCMP_FILE, fd, 999));
    RESULT(compare(own, own, KCMP_FILE, -1, fd));
    RESULT(compare(own, own, KCMP_TYPES, 0, 0));
    RESULT(compare(own, own, -1, 0, 0));
    RESULT(compare(own, 0, KCMP_VM, 0, 0));
    RESULT(compare(999999, own, KCMP_VM, 0, 0));
    section("a child");
    child = spawn(sleeper, NULL);
    all_kinds(child);
    both("an inherited descriptor", own, child, KCMP_FILE, fd, fd);
    both("different descriptors", own, child, KCMP_FILE, fd, other);
    section("a thread");
    pthread_t handle;
    need(pthread_create(&handle, NULL, thread, &tid) == 0);
    while (!go)
        sleep_ms(1);
    all_kinds(tid);
    go = 0;
    pthread_join(handle, NULL);
    section("epoll");
    int set = epoll_create1(0), pipes[2];
    struct epoll_event event = { .events = EPOLLIN };
    need(pipe(pipes) == 0 && epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event) == 0);
    struct kcmp_epoll_slot slot = { .efd = set, .tfd = pipes[0], .toff = 0 };
    RESULT(compare(own, own, KCMP_EPOLL_TFD, pipes[0], (long)&slot));
    check(compare(own, own, KCMP_EPOLL_TFD, pipes[1], (long)&slot) > 0, "the other end is another file");
    slot.toff = 1;
    RESULT(compare(own, own, KCMP_EPOLL_TFD, pipes[0], (long)&slot));
    slot.toff = 0, slot.tfd = pipes[1];
    RESULT(compare(own, own, KCMP_EPOLL_TFD, pipes[0], (long)&slot));
    slot.efd = pipes[0];
    RESULT(compare(own, own, KCMP_EPOLL_TFD, pipes[0], (long)&slot));
    slot.efd = 999;
    RESULT(compare(own, own, KCMP_EPOLL_TFD, pipes[0], (long)&slot));
    RESULT(compare(own, own, KCMP_EPOLL_TFD, pipes[0], 8));
    section("another user");
    show_status("stranger", in_child(stranger, &own));
    kill(child, SIGKILL);
    reap(child);
    return 0;
}
