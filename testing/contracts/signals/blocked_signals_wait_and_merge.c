/* signal(7): a blocked standard signal stays pending once however often it is sent, and arrives when unblocked. */
#include "../contract.h"

static volatile sig_atomic_t count;
static void note(int number) { (void)number; count++; }

int main(void)
{
    sigset_t set, pending, old;
    catch_signal(SIGUSR1, note, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    RESULT(sigprocmask(SIG_BLOCK, &set, NULL));
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    show("delivered while blocked", count);
    RESULT(sigpending(&pending));
    show("pending", sigismember(&pending, SIGUSR1));
    RESULT(sigprocmask(SIG_UNBLOCK, &set, &old));
    show("delivered after", count);
    show("old mask had it", sigismember(&old, SIGUSR1));
    RESULT(sigpending(&pending));
    show("still pending", sigismember(&pending, SIGUSR1));
    section("a pending signal that becomes ignored is dropped");
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_IGN);
    sigpending(&pending);
    show("pending", sigismember(&pending, SIGUSR1));
    return 0;
}
