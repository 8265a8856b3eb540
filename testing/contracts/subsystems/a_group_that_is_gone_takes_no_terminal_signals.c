/*
 * tcsetpgrp(3), credentials(7): a terminal remembers the group in its foreground, not its number: when that group is
 * gone and the number is another session's group, neither keys nor a change of size nor the end of the terminal signal
 * that.
 * contract: timeout=30
 */
#include "contract.h"
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <termios.h>

static int *shared;

static pid_t fork_as(pid_t id)
{
    struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (unsigned long)&id, .set_tid_size = id ? 1 : 0 };
    if (!id)
        args.set_tid = 0;
    return syscall(SYS_clone3, &args, sizeof args);
}

static void wait_for(int index)
{
    for (int i = 0; i < 3000 && !__atomic_load_n(&shared[index], __ATOMIC_SEQ_CST); i++)
        sleep_ms(1);
}

static void tell(int index) { __atomic_store_n(&shared[index], 1, __ATOMIC_SEQ_CST); }

/* Leads the session of the terminal and puts a group into its foreground that ends. */
static int leader(void *name)
{
    need(setsid() != -1);
    int fd = open(name, O_RDWR);
    need(fd != -1 && ioctl(fd, TIOCSCTTY, 0) == 0);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        wait_for(1);
        _exit(0);
    }
    setpgid(job, job);
    need(tcsetpgrp(fd, job) == 0);
    shared[0] = job;
    tell(1);
    reap(job);
    tell(2);
    wait_for(4);
    say("the foreground's number is still told: %d", tcgetpgrp(fd) == job);
    RESULT(tcsetpgrp(fd, getpgrp()));
    RESULT(tcsetpgrp(fd, job));
    tell(5);
    wait_for(6);
    return 0;
}

int main(void)
{
    char name[64];
    struct winsize size = { .ws_row = 30, .ws_col = 90 };
    shared = shared_page();
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    need(master != -1 && grantpt(master) == 0 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof name) == 0);
    pid_t first = spawn(leader, name);
    wait_for(2);
    pid_t number = shared[0];
    pid_t victim = fork_as(number);
    if (victim == 0) {
        setsid();
        tell(3);
        for (int i = 0; i < 200; i++)
            sleep_ms(10);
        _exit(7);
    }
    say("the number is the victim's: %d", victim == number);
    wait_for(3);
    RESULT(write(master, "\003\034\032", 3));
    RESULT(ioctl(master, TIOCSWINSZ, &size));
    sleep_ms(50);
    say("the victim runs: %d", waitpid(victim, NULL, WNOHANG | WUNTRACED) == 0);
    tell(4);
    wait_for(5);
    close(master);
    sleep_ms(50);
    say("the victim runs: %d", waitpid(victim, NULL, WNOHANG | WUNTRACED) == 0);
    tell(6);
    show_status("leader", reap(first));
    kill(victim, SIGTERM);
    show_status("victim", reap(victim));
    return 0;
}
