/*
 * mq_overview(7), mq_unlink(3): the queues' directory belongs to root and is sticky. A user neither unlinks a queue of
 * another user nor opens or replaces it; what its owner has unlinked leaves the name free for all.
 */
#include "security.h"
#include <mqueue.h>

#define NAME "security-owned-queue"

static long make(int flags, mode_t mode)
{
    struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = 8 };
    return syscall(SYS_mq_open, NAME, flags, mode, &attributes);
}

static int attacker(void *unused)
{
    (void)unused;
    become_nobody();
    OUTCOME(syscall(SYS_mq_unlink, NAME));
    OUTCOME(make(O_CREAT | O_EXCL | O_RDWR, 0600));
    OUTCOME(make(O_CREAT | O_RDWR, 0600));
    OUTCOME(make(O_RDONLY, 0));
    OUTCOME(make(O_WRONLY, 0));
    return 0;
}

static int owner(void *unused)
{
    (void)unused;
    become(1000, 1000);
    int fd = make(O_CREAT | O_EXCL | O_RDWR, 0620);
    need(fd != -1);
    return syscall(SYS_mq_timedsend, fd, "kept", 4, 1, NULL) == 0 ? 0 : 1;
}

static int owner_again(void *unused)
{
    char text[8] = "";
    (void)unused;
    become(1000, 1000);
    int fd = make(O_RDONLY, 0);
    show("bytes that wait", syscall(SYS_mq_timedreceive, fd, text, sizeof text, NULL, NULL));
    show_text("message", text);
    OUTCOME(syscall(SYS_mq_unlink, NAME));
    return 0;
}

static int newcomer(void *unused)
{
    (void)unused;
    become_nobody();
    OUTCOME(make(O_CREAT | O_EXCL | O_RDWR, 0600));
    OUTCOME(syscall(SYS_mq_unlink, NAME));
    return 0;
}

int main(void)
{
    umask(0);
    show_status("the owner", in_child(owner, NULL));
    show_status("the attacker", in_child(attacker, NULL));
    show_status("the owner", in_child(owner_again, NULL));
    show_status("a newcomer", in_child(newcomer, NULL));
    return 0;
}
