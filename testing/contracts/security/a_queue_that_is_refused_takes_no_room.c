/*
 * mq_overview(7), RLIMIT_MSGQUEUE: while a process of a user asks for a queue beyond the limit again and again, another
 * gets each that is within it.
 * contract: timeout=30
 */
#include "security.h"
#include <mqueue.h>
#include <sys/resource.h>

#define ROUNDS 20000

static struct mq_attr large = { .mq_maxmsg = 10, .mq_msgsize = 8192 }, small = { .mq_maxmsg = 1, .mq_msgsize = 16 };

static int ask(void *unused)
{
    (void)unused;
    for (;;)
        if (mq_open("/asked", O_RDWR | O_CREAT, 0600, &large) != (mqd_t)-1)
            return 1;
}

static int attempt(void *unused)
{
    (void)unused;
    need(setrlimit(RLIMIT_MSGQUEUE, &(struct rlimit){ 120000, 120000 }) == 0);
    need(mq_open("/held", O_RDWR | O_CREAT, 0600, &large) != (mqd_t)-1);
    OUTCOME(mq_open("/asked", O_RDWR | O_CREAT, 0600, &large));
    pid_t asking = spawn(ask, NULL);
    int failed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        mqd_t queue = mq_open("/small", O_RDWR | O_CREAT, 0600, &small);
        failed += queue == (mqd_t)-1;
        need(queue == (mqd_t)-1 || (mq_close(queue) == 0 && mq_unlink("/small") == 0));
    }
    kill(asking, SIGKILL);
    show_status("who asks", reap(asking));
    show("queues that were refused", failed);
    return mq_unlink("/held");
}

int main(void)
{
    need(as_nobody(attempt, NULL) == 0);
    return 0;
}
