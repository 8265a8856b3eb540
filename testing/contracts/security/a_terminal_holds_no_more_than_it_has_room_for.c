/*
 * termios(3), pty(7), ioctl_tty(2): lines and ends of file that no program reads take bounded memory: the side that
 * types them waits, and what TIOCSTI pushes beyond the room is lost.
 * contract: timeout=30
 */
#include "security.h"
#include <sys/ioctl.h>
#include <termios.h>

#define MOST (4UL << 20)

static int master, slave;

static void open_pair(void)
{
    char name[32];
    int number, unlock = 0;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
    need(master != -1 && ioctl(master, TIOCGPTN, &number) == 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    slave = open(name, O_RDWR | O_NONBLOCK);
    need(slave != -1);
    struct termios state;
    need(tcgetattr(slave, &state) == 0);
    state.c_lflag &= ~ECHO;
    need(tcsetattr(slave, TCSANOW, &state) == 0);
}

static void flood(const char *what, char key)
{
    static char keys[4096];
    unsigned long typed = 0;
    ssize_t got = 0;
    open_pair();
    memset(keys, key, sizeof keys);
    while (typed < MOST && (got = write(master, keys, sizeof keys)) > 0)
        typed += got;
    const char *end = got == -1 && errno == EAGAIN ? "until there is no room" : "fails";
    say("%s: %s", what, typed >= MOST ? "any number" : end);
    char line[64];
    say("%s: the first read gives %zd", what, read(slave, line, sizeof line));
    close(slave);
    close(master);
}

static int attack(void *unused)
{
    flood("lines", '\n');
    flood("ends of file", 4);
    need(setsid() != -1);
    open_pair();
    need(ioctl(slave, TIOCSCTTY, 0) == 0 || errno == EPERM);
    char key = '\n';
    int waiting = 0;
    for (int pushed = 0; pushed < 20000; pushed++)
        need(ioctl(slave, TIOCSTI, &key) == 0);
    need(ioctl(slave, FIONREAD, &waiting) == 0);
    check(waiting > 3000 && waiting <= 4096, "20,000 pushed lines are cut off at the room there is");
    return unused != NULL;
}

int main(void)
{
    show_status("the attack", as_nobody(attack, NULL));
    return 0;
}
