/*
 * signal(7), POSIX 2.4.3: SIGTSTP, SIGTTIN and SIGTTOU do not stop a member of an orphaned process group; SIGSTOP
 * does.
 */
#include "../contract.h"

static int stops(void *argument)
{
    volatile int *numbers = argument;
    for (int i = 0; i < 3; i++) {
        raise(numbers[i]);
        numbers[i + 4] = 1; /* Still running. */
    }
    return 7;
}

static int session(void *argument)
{
    need(setsid() == getpid());
    int status;
    section("group of a session leader whose parent is elsewhere: orphaned");
    show_status("member", in_child(stops, argument));
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(8);
    }
    need(waitpid(child, &status, WUNTRACED) == child);
    show_status("SIGSTOP", status);
    kill(child, SIGCONT);
    show_status("continued", reap(child));
    section("own group, parent in the same session: not orphaned");
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        raise(SIGTSTP);
        _exit(9);
    }
    need(waitpid(child, &status, WUNTRACED) == child);
    show_status("SIGTSTP", status);
    kill(child, SIGCONT);
    show_status("continued", reap(child));
    return 0;
}

int main(void)
{
    volatile int *numbers = shared_page();
    numbers[0] = SIGTSTP, numbers[1] = SIGTTIN, numbers[2] = SIGTTOU;
    show_status("session", in_child(session, (void *)numbers));
    say("ran on after each %d %d %d", numbers[4], numbers[5], numbers[6]);
    return 0;
}
