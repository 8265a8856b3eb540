/*
 * ioctl_tty(2), TIOCSCTTY; tty_ioctl(4): a terminal becomes the controlling one only of a process that may read from
 * it: who may only write to it (write(1), the group tty) does not get its signals, its TIOCSTI or its foreground group.
 */
#include "security.h"
#include <sys/ioctl.h>
#include <termios.h>

static char name[64];

static int by_request(void *unused)
{
    char byte = 'x';
    pid_t group = 0;
    need(setsid() != -1);
    int fd = open(name, O_WRONLY | O_NOCTTY);
    need(fd != -1);
    OUTCOME(ioctl(fd, TIOCSCTTY, 0));
    OUTCOME(ioctl(fd, TIOCSTI, &byte));
    OUTCOME(ioctl(fd, TIOCGPGRP, &group));
    OUTCOME(open("/dev/tty", O_RDWR));
    return unused != NULL;
}

static int by_opening(void *unused)
{
    char byte = 'x';
    pid_t group = 0;
    need(setsid() != -1);
    int fd = open(name, O_WRONLY);
    need(fd != -1);
    OUTCOME(ioctl(fd, TIOCSTI, &byte));
    OUTCOME(ioctl(fd, TIOCGPGRP, &group));
    OUTCOME(open("/dev/tty", O_RDWR));
    return unused != NULL;
}

int main(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    need(master != -1 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof name) == 0 && chmod(name, 0602) == 0);
    section("by TIOCSCTTY");
    show_status("attempt", as_nobody(by_request, NULL));
    section("by opening");
    show_status("attempt", as_nobody(by_opening, NULL));
    int waiting = -1;
    need(ioctl(open(name, O_RDWR | O_NOCTTY), FIONREAD, &waiting) == 0);
    show("bytes typed", waiting);
    return 0;
}
