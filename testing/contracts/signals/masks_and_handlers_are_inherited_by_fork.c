/* fork(2): a child keeps its parent's handlers, mask and alternate stack but starts with no pending signals. */
#include "../contract.h"

static char alternate[16384];
static volatile sig_atomic_t hits;
static void handler(int number) { (void)number; hits++; }

static int child(void *unused)
{
    (void)unused;
    sigset_t set;
    stack_t stack;
    sigpending(&set);
    say("pending in the child %d", sigismember(&set, SIGUSR2));
    sigprocmask(SIG_BLOCK, NULL, &set);
    say("blocked in the child %d", sigismember(&set, SIGUSR2));
    sigaltstack(NULL, &stack);
    say("alternate stack kept %d", stack.ss_sp == (void *)alternate);
    raise(SIGUSR1);
    say("handler hits %d", (int)hits);
    return 0;
}

int main(void)
{
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    sigset_t set;
    need(sigaltstack(&stack, NULL) == 0);
    catch_signal(SIGUSR1, handler, SA_ONSTACK);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR2);
    show_status("child", in_child(child, NULL));
    show("parent hits", hits);
    sigpending(&set);
    show("pending in the parent", sigismember(&set, SIGUSR2));
    return 0;
}
