/*
 * unshare(2), fcntl(2): a process that asks for a descriptor table of its own and has one already keeps it, and with it
 * its record locks; close_range(2) likewise.
 */
#include "../contract.h"
#include <linux/close_range.h>

static int held(void *fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    need(fcntl(*(int *)fd, F_GETLK, &lock) == 0);
    return lock.l_type != F_UNLCK;
}

int main(void)
{
    scratch();
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    need(fd != -1 && fcntl(fd, F_SETLK, &lock) == 0);
    show_status("locked: the other", in_child(held, &fd));
    OUTCOME(unshare(CLONE_FILES));
    show_status("after unshare: the other", in_child(held, &fd));
    OUTCOME(syscall(SYS_close_range, 500, 600, CLOSE_RANGE_UNSHARE));
    show_status("after close_range: the other", in_child(held, &fd));
    return 0;
}
