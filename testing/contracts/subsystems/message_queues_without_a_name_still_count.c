/*
 * mq_overview(7), getrlimit(2): RLIMIT_MSGQUEUE counts the queues of a user while they exist, so also one whose name is
 * gone and that is still open; the last close gives it back.
 */
#include "contract.h"
#include <mqueue.h>
#include <sys/resource.h>

static long make(const char *name)
{
    struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 1024 };
    return syscall(SYS_mq_open, name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
}

static int user(void *unused)
{
    (void)unused;
    struct rlimit limit = { 40000, 40000 };
    int held[8], count = 0;
    need(setrlimit(RLIMIT_MSGQUEUE, &limit) == 0);
    need(setresgid(65532, 65532, 65532) == 0 && setresuid(65532, 65532, 65532) == 0);
    while (count < 8 && (held[count] = make("k1-gone")) >= 0) {
        need(syscall(SYS_mq_unlink, "k1-gone") == 0);
        count++;
    }
    show("open without a name", count);
    OUTCOME(make("k1-more"));
    close(held[0]);
    OUTCOME(make("k1-more"));
    OUTCOME(make("k1-yet-more"));
    RESULT(syscall(SYS_mq_unlink, "k1-more"));
    return 0;
}

int main(void)
{
    show_status("user", in_child(user, NULL));
    show_status("again", in_child(user, NULL));
    return 0;
}
