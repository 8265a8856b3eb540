/*
 * sigreturn(2): handlers that interrupt each other return one by one, each restoring the mask and registers it
 * found.
 */
#include "../contract.h"

static char trace[64];
static void mark(char letter) { size_t length = strlen(trace); trace[length] = letter; }

static int blocked_now(int number)
{
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, number);
}

static void inner(int number) { (void)number; mark('c'); mark(blocked_now(SIGUSR1) ? '1' : '0'); mark('C'); }
static void middle(int number) { (void)number; mark('b'); raise(SIGALRM); mark('B'); }
static void outer(int number) { (void)number; mark('a'); raise(SIGUSR2); mark('A'); }

int main(void)
{
    catch_signal(SIGUSR1, outer, 0);
    catch_signal(SIGUSR2, middle, 0);
    catch_signal(SIGALRM, inner, 0);
    long sum = 0;
    for (int i = 0; i < 3; i++) {
        memset(trace, 0, sizeof trace);
        sum = sum * 10 + 1;
        raise(SIGUSR1);
        show_text("trace", trace);
    }
    show("sum", sum);
    say("nothing blocked %d %d %d", blocked_now(SIGUSR1), blocked_now(SIGUSR2), blocked_now(SIGALRM));
    return 0;
}
