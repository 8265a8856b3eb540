/* select(2): pselect leaves its timeout alone and waits under the given signal mask. */
#include "../contract.h"
#include <sys/select.h>

static volatile sig_atomic_t count;
static void note(int number) { (void)number; count++; }

int main(void)
{
    sigset_t none, block;
    struct timespec timeout = { 0, 20000000 }, long_time = { 3, 0 };
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    catch_signal(SIGUSR1, note, 0);
    RESULT(pselect(0, NULL, NULL, NULL, &timeout, NULL));
    say("timeout %lld.%09ld", (long long)timeout.tv_sec, timeout.tv_nsec);
    sigprocmask(SIG_BLOCK, &block, NULL);
    raise(SIGUSR1);
    RESULT(pselect(0, NULL, NULL, NULL, &timeout, NULL));
    show("handled", count);
    RESULT(pselect(0, NULL, NULL, NULL, &long_time, &none));
    show("handled", count);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    show("blocked again", sigismember(&now, SIGUSR1));
    return 0;
}
