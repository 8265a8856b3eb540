/*
 * tty(4): a background process that reads its terminal gets SIGTTIN; writing with TOSTOP gives SIGTTOU; orphans
 * get EIO.
 */
#include "../contract.h"
#include <sys/ioctl.h>
#include <termios.h>

static int slave;

static int reads(void *unused)
{
    (void)unused;
    char byte;
    setpgid(0, 0);
    return read(slave, &byte, 1) == 1 ? 0 : 9;
}

static int writes(void *unused)
{
    (void)unused;
    setpgid(0, 0);
    return write(slave, "x", 1) == 1 ? 0 : 9;
}

static int ignores(void *unused)
{
    (void)unused;
    setpgid(0, 0);
    signal(SIGTTIN, SIG_IGN);
    char byte;
    RESULT(read(slave, &byte, 1));
    return 0;
}

static void run(const char *title, int (*body)(void *))
{
    int status;
    pid_t child = spawn(body, NULL);
    need(waitpid(child, &status, WUNTRACED) == child);
    show_status(title, status);
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        reap(child);
    }
}

static int leader(void *path)
{
    need(setsid() == getpid() && (slave = open(path, O_RDWR)) != -1);
    run("background read", reads);
    run("background write", writes);
    struct termios state;
    need(tcgetattr(slave, &state) == 0);
    state.c_lflag |= TOSTOP;
    need(tcsetattr(slave, TCSANOW, &state) == 0);
    run("background write with TOSTOP", writes);
    run("read ignoring SIGTTIN", ignores);
    return 0;
}

int main(void)
{
    int number, unlock = 0, master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    char name[32];
    need(master != -1 && ioctl(master, TIOCGPTN, &number) == 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    show_status("leader", in_child(leader, name));
    return 0;
}
