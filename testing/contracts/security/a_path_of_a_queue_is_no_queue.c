/*
 * mq_open(3), open(2): O_PATH opens a queue's name alone; no message goes through such a descriptor, nor is it read.
 */
#include "security.h"
#include <mqueue.h>

static int attempt(void *unused)
{
    char text[8192];
    struct mq_attr attr;
    struct stat meta;
    long queue = syscall(SYS_mq_open, "k24-path", O_CREAT | O_EXCL | O_RDWR, 0600, NULL);
    need(queue != -1);
    long path = OUTCOME(syscall(SYS_mq_open, "k24-path", O_PATH | O_RDWR, 0, NULL));
    need(syscall(SYS_mq_timedsend, queue, "hello", 5, 0, NULL) == 0);
    RESULT(syscall(SYS_mq_timedsend, path, "hello", 5, 0, NULL));
    RESULT(syscall(SYS_mq_timedreceive, path, text, sizeof text, NULL, NULL));
    RESULT(syscall(SYS_mq_getsetattr, path, NULL, &attr));
    RESULT(syscall(SYS_mq_notify, path, NULL));
    RESULT(read(path, text, sizeof text));
    RESULT(fstat(path, &meta));
    show("it is a path", (fcntl(path, F_GETFL) & O_PATH) != 0);
    RESULT(syscall(SYS_mq_timedreceive, queue, text, sizeof text, NULL, NULL));
    section("a path needs the rights that its access mode names");
    need(syscall(SYS_mq_unlink, "k24-path") == 0);
    need(syscall(SYS_mq_open, "k24-path", O_CREAT | O_EXCL | O_WRONLY, 0200, NULL) != -1);
    OUTCOME(syscall(SYS_mq_open, "k24-path", O_PATH, 0, NULL));
    OUTCOME(syscall(SYS_mq_open, "k24-path", O_PATH | O_WRONLY, 0, NULL));
    need(syscall(SYS_mq_unlink, "k24-path") == 0);
    return unused != NULL;
}

int main(void)
{
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
