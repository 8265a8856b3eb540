/*
 * mq_notify(3): one process is signalled once when a message arrives at an empty queue without a waiting receiver;
 * closing or a NULL argument cancels it. Limits and names are checked when a queue is opened.
 */
#include "../contract.h"
#include <mqueue.h>

static mqd_t queue;

static const char *arrives(void)
{
    sigset_t set;
    siginfo_t info;
    struct timespec limit = { 0, 200000000 };
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    int got = sigtimedwait(&set, &info, &limit);
    if (got == SIGUSR1)
        say("code %d mine %d value %d", info.si_code, info.si_pid == getpid(), info.si_value.sival_int);
    return signal_name(got);
}

static int other(void *event)
{
    RESULT(mq_notify(queue, event));
    RESULT(mq_notify(queue, NULL));
    return 0;
}

static int receiver(void *unused)
{
    (void)unused;
    char text[16];
    return mq_receive(queue, text, sizeof text, NULL) == 1 ? 0 : 1;
}

int main(void)
{
    struct mq_attr attributes = { .mq_maxmsg = 2, .mq_msgsize = 16 };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 7 };
    sigset_t set;
    char text[16];
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    mq_unlink("/notify");
    need((queue = mq_open("/notify", O_RDWR | O_CREAT | O_EXCL, 0600, &attributes)) != (mqd_t)-1);
    RESULT(fcntl(queue, F_GETFD));
    RESULT(mq_notify(queue, &event));
    RESULT(mq_notify(queue, &event));
    show_status("another process", in_child(other, &event));
    RESULT(mq_send(queue, "a", 1, 0));
    show_text("first message", arrives());
    RESULT(mq_send(queue, "b", 1, 0));
    show_text("second message", arrives());
    RESULT(mq_notify(queue, &event));
    RESULT(mq_receive(queue, text, sizeof text, NULL));
    RESULT(mq_send(queue, "c", 1, 0));
    show_text("message at a queue that was not empty", arrives());
    RESULT(mq_receive(queue, text, sizeof text, NULL));
    RESULT(mq_receive(queue, text, sizeof text, NULL));
    pid_t child = spawn(receiver, NULL);
    sleep_ms(100);
    RESULT(mq_send(queue, "d", 1, 0));
    show_status("a receiver that waited", reap(child));
    show_text("its message", arrives());
    struct timespec past = { 1, 0 }, wrong = { 1, 2000000000 };
    RESULT(mq_timedreceive(queue, text, sizeof text, NULL, &past));
    RESULT(mq_timedreceive(queue, text, sizeof text, NULL, &wrong));
    RESULT(mq_timedsend(queue, "e", 1, 40000, NULL));
    section("names and limits");
    OUTCOME(mq_open("/notify", O_RDWR | O_CREAT | O_EXCL, 0600, &attributes));
    OUTCOME(mq_open("/none", O_RDWR));
    OUTCOME(mq_open("/a/b", O_RDWR | O_CREAT, 0600, NULL));
    attributes.mq_maxmsg = 0;
    OUTCOME(mq_open("/zero", O_RDWR | O_CREAT, 0600, &attributes));
    RESULT(mq_close(queue));
    RESULT(mq_send(queue, "f", 1, 0));
    RESULT(mq_unlink("/notify"));
    return 0;
}
