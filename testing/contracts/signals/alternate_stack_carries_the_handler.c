/*
 * sigaltstack(2): SA_ONSTACK handlers run on the alternate stack, it cannot change while in use, and too small is
 * ENOMEM.
 */
#include "../contract.h"

static char alternate[32768] __attribute__((aligned(16)));
static volatile sig_atomic_t where = -1, in_use, change;

static void handler(int number)
{
    char here;
    stack_t stack, other = { .ss_flags = SS_DISABLE };
    (void)number;
    where = &here > alternate && &here < alternate + sizeof alternate;
    sigaltstack(NULL, &stack);
    in_use = stack.ss_flags == SS_ONSTACK;
    change = sigaltstack(&other, NULL) == -1 ? errno : 0;
}

static void run(const char *title, int flags)
{
    catch_signal(SIGUSR1, handler, flags);
    raise(SIGUSR1);
    say("%s: on the alternate stack %d, reported in use %d, changing it: %s", title, (int)where, (int)in_use,
        errno_name(change));
}

int main(void)
{
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate }, old;
    RESULT(sigaltstack(NULL, &old));
    show("disabled at first", old.ss_flags == SS_DISABLE);
    RESULT(sigaltstack(&stack, &old));
    run("SA_ONSTACK", SA_ONSTACK);
    run("plain", 0);
    RESULT(sigaltstack(&stack, NULL));
    RESULT(sigaltstack(NULL, &old));
    say("size %zu same place %d", old.ss_size, old.ss_sp == (void *)alternate);
    stack.ss_size = 1000;
    RESULT(syscall(SYS_sigaltstack, &stack, NULL));
    stack.ss_size = sizeof alternate, stack.ss_flags = 77;
    RESULT(syscall(SYS_sigaltstack, &stack, NULL));
    RESULT(syscall(SYS_sigaltstack, BAD_POINTER, NULL));
    return 0;
}
