/*
 * pty(7), termios(3): closing the master ends reads that wait for input, in lines, raw and timed ones, drops what was
 * typed and not read, and sends a session's processes SIGHUP; a reader in the background is not started again by it.
 */
#include "../contract.h"
#include <sys/ioctl.h>
#include <termios.h>

static int master, slave, told[2];

static void open_pair(int flags)
{
    char name[32];
    int number, unlock = 0;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    need(master != -1 && ioctl(master, TIOCGPTN, &number) == 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    need((slave = open(name, O_RDWR | flags)) != -1);
}

static void mode(int minimum, int tenths)
{
    struct termios state;
    need(tcgetattr(slave, &state) == 0);
    if (minimum >= 0) {
        cfmakeraw(&state);
        state.c_cc[VMIN] = (unsigned char)minimum, state.c_cc[VTIME] = (unsigned char)tenths;
    }
    state.c_lflag &= ~ECHO;
    need(tcsetattr(slave, TCSANOW, &state) == 0);
}

static int reader(void *unused)
{
    char text[16];
    close(master);
    need(write(told[1], "r", 1) == 1);
    ssize_t got = read(slave, text, sizeof text);
    say("the read that waits: %s", got == 0 || (got == -1 && errno == EIO) ? "ends" : "gives something else");
    RESULT(read(slave, text, sizeof text));
    RESULT(write(slave, "x", 1));
    struct pollfd wait = { slave, POLLIN | POLLOUT, 0 };
    RESULT(poll(&wait, 1, 0));
    say("in %d out %d hup %d", !!(wait.revents & POLLIN), !!(wait.revents & POLLOUT),
        !!(wait.revents & POLLHUP));
    int waiting = -1;
    RESULT(ioctl(slave, FIONREAD, &waiting));
    struct termios state;
    RESULT(tcgetattr(slave, &state));
    return unused != NULL;
}

static void hang_up_a_reader(const char *title, int minimum, int tenths)
{
    char byte;
    section(title);
    open_pair(O_NOCTTY);
    mode(minimum, tenths);
    need(pipe(told) == 0);
    pid_t child = spawn(reader, NULL);
    need(read(told[0], &byte, 1) == 1);
    sleep_ms(50);
    close(master);
    show_status("reader", reap(child));
    close(slave);
    close(told[0]);
    close(told[1]);
}

static volatile sig_atomic_t hups, conts;
static void note(int number) { *(number == SIGHUP ? &hups : &conts) += 1; }

static int leader(void *unused)
{
    char text[16];
    need(setsid() != -1);
    open_pair(0);
    mode(-1, 0);
    catch_signal(SIGHUP, note, 0);
    catch_signal(SIGCONT, note, 0);
    need(write(master, "typed\nhalf", 10) == 10);
    close(master);
    sleep_ms(20);
    say("told: SIGHUP %d, SIGCONT %d", hups, conts);
    RESULT(read(slave, text, sizeof text));
    OUTCOME(open("/dev/tty", O_RDWR));
    return unused != NULL;
}

int main(void)
{
    hang_up_a_reader("lines", -1, 0);
    hang_up_a_reader("raw, five bytes", 5, 0);
    hang_up_a_reader("raw, timed", 0, 50);
    section("a session's leader");
    show_status("leader", in_child(leader, NULL));
    section("a partner that reads the other way");
    open_pair(O_NOCTTY);
    need(write(slave, "left\n", 5) == 5);
    close(slave);
    char text[16];
    RESULT(read(master, text, sizeof text));
    RESULT(read(master, text, sizeof text));
    RESULT(write(master, "a", 1));
    return 0;
}
