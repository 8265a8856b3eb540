/*
 * sigaltstack(2): a handler on the alternate stack survives the overflow of the main one; without it the process
 * dies.
 */
#include "../contract.h"
#include <setjmp.h>
#include <sys/resource.h>

static char alternate[32768];
static sigjmp_buf back;

static void handler(int number) { siglongjmp(back, number); }

static int recurse(volatile char *above);
static int (*volatile next)(volatile char *) = recurse; /* Hides the endless recursion from the compiler. */

static int recurse(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above[0] + 1;
    return next(frame) + frame[0];
}

static int child(void *use_stack)
{
    struct rlimit limit = { 256 << 10, RLIM_INFINITY };
    need(setrlimit(RLIMIT_STACK, &limit) == 0);
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    if (use_stack)
        need(sigaltstack(&stack, NULL) == 0);
    catch_signal(SIGSEGV, handler, SA_ONSTACK);
    volatile char start = 1;
    int number = sigsetjmp(back, 1);
    if (number == 0)
        return recurse(&start);
    say("came back with %s", signal_name(number));
    return 3;
}

int main(void)
{
    show_status("with an alternate stack", in_child(child, alternate));
    show_status("without", in_child(child, NULL));
    return 0;
}
