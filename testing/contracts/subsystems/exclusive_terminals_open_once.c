/*
 * ioctl_tty(2): after TIOCEXCL a further open of the terminal fails with EBUSY unless the caller has CAP_SYS_ADMIN,
 * until TIOCNXCL; TIOCGEXCL tells which. Each end of a pseudo-terminal has a flag of its own.
 */
#include "contract.h"
#include <sys/ioctl.h>
#ifndef TIOCGEXCL
#define TIOCGEXCL 0x80045440
#endif
#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

static int master, terminal;
static char name[64];

static void tell(const char *who, int fd)
{
    int exclusive = -1;
    int result = ioctl(fd, TIOCGEXCL, &exclusive);
    say("%s: %d, exclusive %d", who, result, exclusive);
}

static int as_user(void *argument)
{
    (void)argument;
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    OUTCOME(open(name, O_RDWR | O_NOCTTY));
    OUTCOME(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    return 0;
}

static int in_session(void *argument)
{
    (void)argument;
    need(setsid() != -1 && ioctl(terminal, TIOCSCTTY, 0) == 0);
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    OUTCOME(open("/dev/tty", O_RDWR));
    RESULT(ioctl(terminal, TIOCNXCL));
    OUTCOME(open("/dev/tty", O_RDWR));
    return 0;
}

int main(void)
{
    int number, unlock = 0;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(master != -1 && ioctl(master, TIOCSPTLCK, &unlock) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    need(chmod(name, 0666) == 0);
    terminal = open(name, O_RDWR | O_NOCTTY);
    need(terminal != -1);
    tell("terminal at first", terminal);
    RESULT(ioctl(master, TIOCEXCL));
    tell("master", master);
    tell("terminal", terminal);
    show_status("user beside an exclusive master", in_child(as_user, NULL));
    RESULT(ioctl(master, TIOCNXCL));
    RESULT(ioctl(terminal, TIOCEXCL));
    RESULT(ioctl(terminal, TIOCEXCL));
    tell("master", master);
    tell("terminal", terminal);
    RESULT(ioctl(terminal, TIOCGEXCL, BAD_POINTER));
    show_status("user", in_child(as_user, NULL));
    int second = open(name, O_RDWR | O_NOCTTY);
    check(second != -1, "root opens it all the same");
    tell("terminal by the other description", second);
    close(second);
    section("closed and opened again it is still exclusive");
    close(terminal);
    show_status("user", in_child(as_user, NULL));
    terminal = open(name, O_RDWR | O_NOCTTY);
    need(terminal != -1);
    tell("terminal", terminal);
    section("by the name of the controlling terminal");
    show_status("user", in_child(in_session, NULL));
    tell("terminal", terminal);
    show_status("user", in_child(as_user, NULL));
    return 0;
}
