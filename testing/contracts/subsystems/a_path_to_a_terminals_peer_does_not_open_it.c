/*
 * ioctl_tty(2), TIOCGPTPEER; open(2), O_PATH: a descriptor that only names the terminal does not read or write it, and
 * a session leader that asks for one gets no controlling terminal by it.
 */
#include "../contract.h"
#include <sys/ioctl.h>

static int leads(void *unused)
{
    int unlocked = 0, session;
    char byte;
    (void)unused;
    need(setsid() > 0);
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(master != -1 && ioctl(master, TIOCSPTLCK, &unlocked) == 0);
    int peer = ioctl(master, TIOCGPTPEER, O_PATH);
    check(peer != -1, "a path descriptor of the peer");
    RESULT(read(peer, &byte, 1));
    RESULT(write(peer, "x", 1));
    OUTCOME(open("/dev/tty", O_RDONLY));
    OUTCOME(ioctl(master, TIOCGSID, &session));
    close(master);
    sleep_ms(20);
    return 0;
}

int main(void)
{
    show_status("the leader", in_child(leads, NULL));
    return 0;
}
