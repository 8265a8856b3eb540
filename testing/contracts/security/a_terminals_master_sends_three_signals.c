/*
 * ioctl_tty(2), TIOCSIG: a holder of the master of a pseudo-terminal sends SIGINT, SIGQUIT and SIGTSTP to the
 * foreground group, whichever user that runs as (a set-user-ID program, say), and no other signal.
 */
#include "security.h"
#include <sys/ioctl.h>

#ifndef TIOCSIG
#define TIOCSIG _IOW('T', 0x36, int)
#endif

static int master;
static volatile sig_atomic_t caught[65];
static void count(int number) { caught[number]++; }

static int attempt(void *unused)
{
    static const int forbidden[] = {
        0, SIGHUP, SIGILL, SIGKILL, SIGUSR1, SIGSEGV, SIGTERM, SIGCONT, SIGSTOP, SIGTTIN, 34, 64, 65, -1,
    };
    (void)unused;
    for (size_t at = 0; at < COUNT_OF(forbidden); at++) {
        int value = ioctl(master, TIOCSIG, (long)forbidden[at]);
        say("signal %d: %s", forbidden[at], value == -1 ? errno_name(errno) : "sent");
    }
    OUTCOME(ioctl(master, TIOCSIG, (long)SIGINT));
    OUTCOME(ioctl(master, TIOCSIG, (long)SIGQUIT));
    OUTCOME(ioctl(master, TIOCSIG, (long)SIGTSTP));
    return 0;
}

int main(void)
{
    char name[32];
    int number, unlock = 0, ready[2];
    need((master = open("/dev/ptmx", O_RDWR | O_NOCTTY)) != -1 && pipe(ready) == 0);
    need(ioctl(master, TIOCSPTLCK, &unlock) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    pid_t victim = fork();
    if (victim == 0) {
        need(setsid() != -1 && open(name, O_RDWR) != -1);
        for (int signal = 1; signal <= 64; signal++) {
            struct sigaction action = { .sa_handler = count };
            sigaction(signal, &action, NULL);
        }
        tell(ready[1]);
        while (!caught[SIGTSTP])
            sleep_ms(5);
        for (int signal = 1; signal <= 64; signal++)
            if (caught[signal])
                say("the victim got %s", signal_name(signal));
        return 0;
    }
    await(ready[0]);
    as_nobody(attempt, NULL);
    show_status("the victim", reap(victim));
    return 0;
}
