/*
 * fork(2): the child has its own copy of memory and descriptors, but both share the file offsets; pending signals
 * do not pass.
 */
#include "../contract.h"

static int value = 1;

static int child(void *argument)
{
    int fd = *(int *)argument;
    char byte;
    sigset_t pending;
    value = 2;
    need(read(fd, &byte, 1) == 1);
    close(fd);
    sigpending(&pending);
    say("child: value %d byte %c pending %d", value, byte, sigismember(&pending, SIGUSR1));
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    say("child: mask kept %d, parent is mine %d", sigismember(&mask, SIGUSR1), getppid() > 0);
    return 5;
}

int main(void)
{
    scratch();
    put_file("file", "abc", 0600);
    int fd = open("file", O_RDONLY);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    show_status("child", in_child(child, &fd));
    char byte;
    RESULT(read(fd, &byte, 1));
    say("parent: value %d byte %c", value, byte);
    return 0;
}
