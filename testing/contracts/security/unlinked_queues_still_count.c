/*
 * mq_overview(7), RLIMIT_MSGQUEUE: a queue counts for its user until it goes, which an unlinked one does when it is
 * closed; the limit is not evaded by unlinking.
 */
#include "security.h"
#include <mqueue.h>
#include <sys/resource.h>

static long make(void)
{
    struct mq_attr attributes = { .mq_maxmsg = 10, .mq_msgsize = 1024 };
    long fd = syscall(SYS_mq_open, "security-counted", O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
    if (fd != -1)
        need(syscall(SYS_mq_unlink, "security-counted") == 0);
    return fd;
}

static int attempt(void *unused)
{
    long fds[64];
    size_t count = 0;
    struct rlimit limit = { 40000, 40000 };
    (void)unused;
    need(setrlimit(RLIMIT_MSGQUEUE, &limit) == 0);
    while (count < COUNT_OF(fds) && (fds[count] = make()) != -1)
        count++;
    show("queues that could be held open", count);
    OUTCOME(make());
    close(fds[0]);
    OUTCOME(fds[0] = make());
    OUTCOME(make());
    return 0;
}

int main(void)
{
    as_nobody(attempt, NULL);
    as_nobody(attempt, NULL);
    return 0;
}
