/*
 * signal(7): a fault whose signal is blocked or ignored kills by default action; a fault inside its own handler
 * too.
 */
#include "../contract.h"

static void store(void) { *(volatile int *)bad_pointer() = 1; }

static int blocked(void *unused)
{
    (void)unused;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_BLOCK, &set, NULL);
    store();
    return 0;
}

static int ignored(void *unused)
{
    (void)unused;
    signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV);
    say("a raised one is ignored");
    store();
    return 0;
}

static void faults_again(int number) { (void)number; store(); }
static int nested(void *unused)
{
    (void)unused;
    catch_signal(SIGSEGV, faults_again, 0);
    store();
    return 0;
}

static volatile int turns;
static void counts(int number)
{
    (void)number;
    if (++turns == 5)
        _exit(50 + turns);
}
static int returns(void *unused)
{
    (void)unused;
    catch_signal(SIGSEGV, counts, 0);
    store();
    return 0;
}

int main(void)
{
    show_status("blocked", in_child(blocked, NULL));
    show_status("ignored", in_child(ignored, NULL));
    show_status("nested", in_child(nested, NULL));
    show_status("returning handlers fault again", in_child(returns, NULL));
    return 0;
}
