/*
 * signal(7): SIGCONT drops pending stop signals and continues even when blocked or ignored; a stop drops a pending
 * SIGCONT.
 */
#include "../contract.h"

static volatile sig_atomic_t continued;
static void note(int number) { (void)number; continued++; }

static int child(void *shared)
{
    catch_signal(SIGCONT, note, 0);
    kill(getpid(), SIGSTOP);
    ((volatile int *)shared)[0] = 10 + continued;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCONT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGSTOP);
    ((volatile int *)shared)[1] = 20 + continued;
    sigpending(&set);
    ((volatile int *)shared)[2] = sigismember(&set, SIGCONT);
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGTSTP);
    raise(SIGCONT);
    sigpending(&set);
    ((volatile int *)shared)[3] = 30 + sigismember(&set, SIGTSTP);
    return 6;
}

int main(void)
{
    volatile int *shared = shared_page();
    int status;
    pid_t pid = spawn(child, (void *)shared);
    for (int i = 0; i < 2; i++) {
        need(waitpid(pid, &status, WUNTRACED) == pid);
        show_status("child", status);
        kill(pid, SIGCONT);
    }
    show_status("child", reap(pid));
    say("handler ran %d, while blocked %d, pending %d, stop dropped %d", shared[0], shared[1], shared[2], shared[3]);
    return 0;
}
