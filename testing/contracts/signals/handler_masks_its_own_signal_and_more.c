/*
 * sigaction(2): while a handler runs, its signal and sa_mask are blocked, unless SA_NODEFER; the old mask returns
 * after.
 */
#include "../contract.h"

static volatile sig_atomic_t depth, deepest, turns;

static void show_mask(const char *when)
{
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    say("%s: SIGUSR1 %d SIGUSR2 %d SIGHUP %d", when, sigismember(&set, SIGUSR1), sigismember(&set, SIGUSR2),
        sigismember(&set, SIGHUP));
}

static void handler(int number)
{
    depth++;
    if (depth > deepest)
        deepest = depth;
    if (turns++ == 0) {
        show_mask("in the handler");
        raise(number);
    }
    depth--;
}

static void run(const char *title, int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    sigaddset(&action.sa_mask, SIGUSR2);
    need(sigaction(SIGUSR1, &action, NULL) == 0);
    section(title);
    deepest = turns = 0;
    raise(SIGUSR1);
    say("turns %d deepest %d", (int)turns, (int)deepest);
    show_mask("after");
}

static int reset(void *unused)
{
    (void)unused;
    run("SA_RESETHAND", SA_RESETHAND | SA_NODEFER);
    return 0;
}

int main(void)
{
    run("plain", 0);
    run("SA_NODEFER", SA_NODEFER);
    show_status("the second signal took the default", in_child(reset, NULL));
    return 0;
}
