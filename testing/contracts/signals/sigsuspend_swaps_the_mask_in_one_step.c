/*
 * sigsuspend(2): waits under another mask, returns EINTR after a handler, and restores the mask; no signal is lost
 * between.
 */
#include "../contract.h"

static volatile sig_atomic_t count;
static void handler(int number) { (void)number; count++; }

static int pester(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        kill(getppid(), SIGUSR1);
        sched_yield();
    }
    kill(getppid(), SIGUSR2);
    return 0;
}

static volatile sig_atomic_t done;
static void finish(int number) { (void)number; done = 1; }

int main(void)
{
    sigset_t block, none;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    sigaddset(&block, SIGUSR2);
    catch_signal(SIGUSR1, handler, 0);
    catch_signal(SIGUSR2, finish, 0);
    sigprocmask(SIG_BLOCK, &block, NULL);
    raise(SIGUSR1);
    show("before", count);
    RESULT(sigsuspend(&none));
    show("after", count);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    say("mask restored %d %d", sigismember(&mask, SIGUSR1), sigismember(&mask, SIGUSR2));
    pid_t child = spawn(pester, NULL);
    int returns = 0;
    while (!done) {
        sigsuspend(&none);
        returns++;
    }
    show_status("sender", reap(child));
    say("at least one delivery %d, never more than sent %d, a handler for every return %d", count > 1, count <= 51,
        count + 1 >= returns);
    return 0;
}
