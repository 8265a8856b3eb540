/*
 * tty(4), setsid(2): a session leader gets a controlling terminal; VINTR signals its foreground group, hangup
 * sends SIGHUP.
 */
#include "../contract.h"
#include <sys/ioctl.h>
#include <termios.h>

static int master;
static char name[32];

static int leader(void *unused)
{
    (void)unused;
    OUTCOME(open("/dev/tty", O_RDWR));
    need(setsid() == getpid());
    OUTCOME(open("/dev/tty", O_RDWR));
    int slave = open(name, O_RDWR);
    need(slave != -1);
    OUTCOME(open("/dev/tty", O_RDWR));
    show("session of the terminal is ours", tcgetsid(slave) == getpid());
    show("foreground group is ours", tcgetpgrp(slave) == getpgrp());
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, NULL);
    const char keys[] = "\003\034\032";
    struct timespec limit = { 2, 0 };
    for (int i = 0; i < 3; i++) {
        need(write(master, &keys[i], 1) == 1);
        show_text("key sent", signal_name(sigtimedwait(&set, NULL, &limit)));
    }
    struct winsize size = { 30, 100, 0, 0 }, got;
    RESULT(ioctl(master, TIOCSWINSZ, &size));
    RESULT(ioctl(slave, TIOCGWINSZ, &got));
    say("rows %d columns %d", got.ws_row, got.ws_col);
    show_text("resizing sent", signal_name(sigtimedwait(&set, NULL, &limit)));
    RESULT(tcsetpgrp(slave, 999999));
    close(master);
    show_text("hanging up sent", signal_name(sigtimedwait(&set, NULL, &limit)));
    char byte;
    RESULT(read(slave, &byte, 1));
    RESULT(write(slave, &byte, 1));
    return 0;
}

int main(void)
{
    int number, unlock = 0;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    need(master != -1 && ioctl(master, TIOCGPTN, &number) == 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        setpgid(0, 0);
        pid_t inner = fork();
        if (inner == 0)
            _exit(leader(NULL));
        close(master);
        _exit(WEXITSTATUS(reap(inner)));
    }
    close(master);
    show_status("leader", reap(child));
    return 0;
}
