/*
 * termios(3), tty_ioctl(4): a pty starts with the usual special characters, windows of 0 by 0, and refuses
 * nonsense.
 */
#include "../contract.h"
#include <sys/ioctl.h>
#include <termios.h>

int main(void)
{
    int number, unlock = 0, master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    char name[32];
    struct termios state;
    struct winsize size = { 9, 9, 9, 9 };
    need(master != -1);
    int locked = -1;
    RESULT(ioctl(master, TIOCGPTN, &number));
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    OUTCOME(open(name, O_RDWR | O_NOCTTY));
    RESULT(ioctl(master, TIOCGPTLCK, &locked));
    show("locked", locked);
    RESULT(ioctl(master, TIOCSPTLCK, &unlock));
    int slave = open(name, O_RDWR | O_NOCTTY);
    RESULT(tcgetattr(slave, &state));
    say("iflag %o oflag %o cflag %o lflag %o", state.c_iflag, state.c_oflag, state.c_cflag, state.c_lflag);
    say("intr %d quit %d erase %d kill %d eof %d susp %d min %d time %d", state.c_cc[VINTR], state.c_cc[VQUIT],
        state.c_cc[VERASE], state.c_cc[VKILL], state.c_cc[VEOF], state.c_cc[VSUSP], state.c_cc[VMIN],
        state.c_cc[VTIME]);
    RESULT(ioctl(slave, TIOCGWINSZ, &size));
    say("%d rows %d columns", size.ws_row, size.ws_col);
    int waiting = -1;
    RESULT(write(master, "abc\ndef", 7));
    struct pollfd wait = { slave, POLLIN, 0 };
    RESULT(poll(&wait, 1, 2000));
    RESULT(ioctl(slave, FIONREAD, &waiting));
    show("bytes of the finished line", waiting);
    RESULT(tcflush(slave, TCIFLUSH));
    RESULT(ioctl(slave, FIONREAD, &waiting));
    show("after flushing", waiting);
    RESULT(tcsendbreak(slave, 0));
    RESULT(tcgetpgrp(slave));
    RESULT(ioctl(slave, TIOCSCTTY, 0));
    RESULT(ioctl(slave, 0x5499, 0));
    RESULT(tcgetattr(-1, &state));
    close(slave);
    char byte;
    fcntl(master, F_SETFL, O_NONBLOCK);
    while (read(master, &byte, 1) == 1)
        ;
    show_text("reading the master without a slave", errno_name(errno));
    return 0;
}
