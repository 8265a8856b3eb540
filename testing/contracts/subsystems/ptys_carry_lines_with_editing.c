/*
 * pty(7), termios(3): a new pty pair echoes, edits lines with erase and kill, maps CR and NL, and ends input at
 * VEOF.
 */
#include "../contract.h"
#include <sys/ioctl.h>
#include <termios.h>

static int master, slave;

static void visible(const char *what, int fd)
{
    char text[128], shown[512] = "";
    struct pollfd wait = { fd, POLLIN, 0 };
    ssize_t got = poll(&wait, 1, 200) == 1 ? read(fd, text, sizeof text) : -2;
    for (ssize_t i = 0; i < got; i++)
        snprintf(shown + strlen(shown), sizeof shown - strlen(shown),
                 text[i] < 32 || text[i] == 127 ? "<%02x>" : "%c", text[i]);
    say("%s: %zd %s", what, got, shown);
}

static void type(const char *keys)
{
    need(write(master, keys, strlen(keys)) == (ssize_t)strlen(keys));
}

int main(void)
{
    char name[32];
    int number, unlock = 0;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(master != -1 && ioctl(master, TIOCGPTN, &number) == 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    slave = open(name, O_RDWR | O_NOCTTY);
    need(slave != -1);
    show("is a terminal", isatty(slave));
    struct termios state;
    need(tcgetattr(slave, &state) == 0);
    say("canonical %d echo %d signals %d output processing %d", !!(state.c_lflag & ICANON), !!(state.c_lflag & ECHO),
        !!(state.c_lflag & ISIG), !!(state.c_oflag & OPOST));
    type("hello\r");
    visible("echo", master);
    visible("line", slave);
    type("helpx\177 me\n");
    visible("echo of erase", master);
    visible("line", slave);
    type("gone\025kept\n");
    visible("echo of kill", master);
    visible("line", slave);
    type("part");
    visible("echo", master);
    visible("no line yet", slave);
    type("\004");
    visible("ended by VEOF", slave);
    type("\004");
    visible("end of file", slave);
    need(write(slave, "out\n", 4) == 4);
    visible("output", master);
    state.c_lflag &= ~(ICANON | ECHO);
    state.c_cc[VMIN] = 1, state.c_cc[VTIME] = 0;
    RESULT(tcsetattr(slave, TCSANOW, &state));
    type("ab\177");
    visible("raw", slave);
    visible("no echo", master);
    return 0;
}
