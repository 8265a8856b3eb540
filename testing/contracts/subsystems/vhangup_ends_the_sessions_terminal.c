/*
 * vhangup(2): a program that may configure terminals hangs its session's terminal up: the session loses it and is
 * told, what was open of it reads as ended, and the terminal can be opened again. Others are refused.
 */
#include "../contract.h"
#include <sys/ioctl.h>
#include <termios.h>

static char name[32];
static volatile sig_atomic_t hung_up;

static void note(int number) { hung_up += number == SIGHUP; }

static int as_user(void *unused)
{
    need(setuid(65534) == 0);
    RESULT(vhangup());
    return unused != NULL;
}

static int session(void *unused)
{
    char byte;
    catch_signal(SIGHUP, note, 0);
    need(setsid() != -1);
    RESULT(vhangup());
    show("without a terminal, hung up", hung_up);
    int slave = open(name, O_RDWR);
    need(slave != -1);
    need(in_child(as_user, NULL) == 0);
    RESULT(vhangup());
    show("hung up", hung_up);
    RESULT(read(slave, &byte, 1));
    RESULT(write(slave, "x", 1));
    struct termios state;
    RESULT(tcgetattr(slave, &state));
    OUTCOME(open("/dev/tty", O_RDWR));
    int again = open(name, O_RDWR | O_NOCTTY);
    check(again != -1, "it opens again");
    RESULT(write(again, "y", 1));
    return unused != NULL;
}

int main(void)
{
    int number, unlock = 0;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(master != -1 && ioctl(master, TIOCGPTN, &number) == 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    show_status("the session", in_child(session, NULL));
    return 0;
}
