/*
 * mq_overview(7): attributes of a queue are bounded (EINVAL), RLIMIT_MSGQUEUE bounds the bytes of a user's queues
 * (EMFILE), and what a queue counted is given back when it goes.
 */
#include "contract.h"
#include <mqueue.h>
#include <sys/resource.h>

static long make(const char *name, long messages, long size)
{
    struct mq_attr attr = { .mq_maxmsg = messages, .mq_msgsize = size };
    long fd = syscall(SYS_mq_open, name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : fd;
}

static int user(void *unused)
{
    (void)unused;
    struct rlimit limit = { 20000, 20000 };
    need(setrlimit(RLIMIT_MSGQUEUE, &limit) == 0);
    need(setresgid(65532, 65532, 65532) == 0 && setresuid(65532, 65532, 65532) == 0);
    RESULT(make("k3-a", 10, 1024));
    RESULT(make("k3-b", 10, 1024));
    RESULT(make("k3-c", 1, 64));
    RESULT(syscall(SYS_mq_unlink, "k3-a"));
    RESULT(make("k3-b", 10, 1024));
    RESULT(make("k3-d", 11, 10));
    RESULT(make("k3-e", 1, 8193));
    RESULT(syscall(SYS_mq_unlink, "k3-b"));
    RESULT(syscall(SYS_mq_unlink, "k3-c"));
    return 0;
}

int main(void)
{
    RESULT(make("k3-x", 0, 10));
    RESULT(make("k3-x", 10, 0));
    RESULT(make("k3-x", -1, 10));
    RESULT(make("k3-x", 65537, 10));
    RESULT(make("k3-x", 10, 16777217));
    RESULT(make("", 10, 10));
    RESULT(make("a/b", 10, 10));
    RESULT(syscall(SYS_mq_unlink, "k3-none"));
    RESULT(syscall(SYS_mq_unlink, ""));
    show_status("user", in_child(user, NULL));
    return 0;
}
