/*
 * ioctl_tty(2): TIOCSTI into a terminal that is not one's controlling one needs CAP_SYS_ADMIN, and so does stealing one
 * with TIOCSCTTY; the foreground group is set only in one's own session.
 */
#include "security.h"
#include <sys/ioctl.h>
#include <termios.h>

static char name[64];

static int attempt(void *unused)
{
    char byte = 'x';
    pid_t group = getpid();
    int fd = open(name, O_RDWR | O_NOCTTY);
    need(fd != -1);
    OUTCOME(ioctl(fd, TIOCSTI, &byte));
    OUTCOME(ioctl(fd, TIOCSPGRP, &group));
    OUTCOME(ioctl(fd, TIOCGPGRP, &group));
    OUTCOME(ioctl(fd, TIOCNOTTY));
    need(setsid() != -1);
    OUTCOME(ioctl(fd, TIOCSCTTY, 1));
    OUTCOME(ioctl(fd, TIOCSCTTY, 0));
    OUTCOME(ioctl(fd, TIOCSTI, &byte));
    return unused != NULL;
}

static void holds_it(void)
{
    need(setsid() != -1);
    int fd = open(name, O_RDWR);
    need(fd != -1 && ioctl(fd, TIOCSCTTY, 0) == 0);
}

int main(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    need(master != -1 && grantpt(master) == 0 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof name) == 0);
    need(chmod(name, 0666) == 0);
    pid_t victim = start_victim(holds_it);
    show_status("attempt", as_nobody(attempt, NULL));
    int waiting = -1;
    need(ioctl(open(name, O_RDWR | O_NOCTTY), FIONREAD, &waiting) == 0);
    show("bytes typed", waiting);
    end_victim("victim", victim);
    return 0;
}
