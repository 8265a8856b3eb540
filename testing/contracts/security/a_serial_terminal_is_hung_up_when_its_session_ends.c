/*
 * credentials(7), POSIX 11.1.10, tty_ioctl(4): when the leader of a session ends, its terminal is hung up: a process
 * left behind that holds it open neither reads what the next one types nor writes on its screen. (Linux leaves
 * pseudo-terminals to their masters.)
 */
#include "security.h"
#include <sys/ioctl.h>
#include <termios.h>

static int told[2], go[2], ended[2];

/* What the user before left running, with the terminal still open. */
static int leftover(int fd)
{
    char text[64];
    struct termios settings;
    tell(told[1]);
    await(go[0]);
    struct pollfd wish = { .fd = fd, .events = POLLIN | POLLOUT };
    say("poll: %d, hung up: %d", poll(&wish, 1, 0), !!(wish.revents & POLLHUP));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    RESULT(read(fd, text, sizeof text));
    RESULT(write(fd, "\n", 1));
    OUTCOME(tcgetattr(fd, &settings));
    OUTCOME(open("/dev/tty", O_RDWR));
    tell(ended[1]);
    return 0;
}

static int login(void *unused)
{
    signal(SIGHUP, SIG_IGN);
    need(setsid() != -1);
    int fd = open("/dev/ttyS0", O_RDWR);
    need(fd != -1);
    OUTCOME(tcgetpgrp(fd));
    if (fork() == 0) {
        need(setpgid(0, 0) == 0);
        _exit(leftover(fd));
    }
    await(told[0]);
    /* The test's own lines go there too, and a hang-up drops what was not sent yet. */
    tcdrain(fd);
    return unused != NULL;
}

int main(void)
{
    need(pipe(told) == 0 && pipe(go) == 0 && pipe(ended) == 0);
    show_status("the session's leader", in_child(login, NULL));
    tell(go[1]);
    await(ended[0]);
    int again = open("/dev/ttyS0", O_RDWR | O_NOCTTY);
    say("opened again: %s", again == -1 ? errno_name(errno) : "ok");
    return 0;
}
