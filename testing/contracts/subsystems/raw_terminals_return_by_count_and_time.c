/* termios(3): in raw mode VMIN and VTIME decide when a read returns: at once, after bytes, or after a pause. */
#include "../contract.h"
#include <sys/ioctl.h>
#include <termios.h>

static int master, slave;

static void mode(int minimum, int tenths)
{
    struct termios state;
    need(tcgetattr(slave, &state) == 0);
    cfmakeraw(&state);
    state.c_cc[VMIN] = (unsigned char)minimum, state.c_cc[VTIME] = (unsigned char)tenths;
    need(tcsetattr(slave, TCSAFLUSH, &state) == 0);
}

static int late_typist(void *unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++) {
        sleep_ms(30);
        need(write(master, "z", 1) == 1);
    }
    return 0;
}

int main(void)
{
    int number, unlock = 0;
    char name[32], text[16];
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(master != -1 && ioctl(master, TIOCGPTN, &number) == 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    need((slave = open(name, O_RDWR | O_NOCTTY)) != -1);
    mode(0, 0);
    RESULT(read(slave, text, 16));
    need(write(master, "ab\r\n\003", 5) == 5);
    struct pollfd wait = { slave, POLLIN, 0 };
    RESULT(poll(&wait, 1, 2000));
    RESULT(read(slave, text, 16));
    say("untranslated %d", memcmp(text, "ab\r\n\003", 5) == 0);
    mode(0, 1);
    long long start = elapsed_ms();
    RESULT(read(slave, text, 16));
    check(elapsed_ms() - start >= 90, "waited a tenth of a second");
    mode(3, 0);
    pid_t child = spawn(late_typist, NULL);
    show("at least three", read(slave, text, 16) >= 3);
    show_status("typist", reap(child));
    mode(1, 0);
    need(write(slave, "x\ny", 3) == 3);
    RESULT(read(master, text, 16));
    return 0;
}
