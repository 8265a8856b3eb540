/*
 * mq_overview(7): POSIX queues deliver the highest priority first, keep order within one, and block or say EAGAIN
 * when full.
 */
#include "../contract.h"
#include <mqueue.h>

int main(void)
{
    struct mq_attr attributes = { .mq_maxmsg = 3, .mq_msgsize = 16 }, got;
    mq_unlink("/contract");
    mqd_t queue = mq_open("/contract", O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attributes);
    if (queue == (mqd_t)-1) {
        say("no queues: %s", errno_name(errno));
        return 0;
    }
    RESULT(mq_send(queue, "low", 3, 1));
    RESULT(mq_send(queue, "high", 4, 9));
    RESULT(mq_send(queue, "low too", 7, 1));
    RESULT(mq_send(queue, "full", 4, 1));
    RESULT(mq_getattr(queue, &got));
    show("waiting", got.mq_curmsgs);
    char text[17];
    unsigned priority;
    for (int i = 0; i < 4; i++) {
        memset(text, 0, sizeof text);
        RESULT(mq_receive(queue, text, 16, &priority));
        say("\"%s\" priority %u", text, text[0] ? priority : 0);
    }
    RESULT(mq_receive(queue, text, 3, &priority));
    RESULT(mq_send(queue, "much too long for it", 20, 0));
    struct pollfd wait = { queue, POLLIN | POLLOUT, 0 };
    RESULT(poll(&wait, 1, 0));
    say("revents %x", wait.revents);
    RESULT(mq_unlink("/contract"));
    RESULT(mq_unlink("/contract"));
    return 0;
}
