/*
 * What a program writes into the signal frame gives it no privilege: other code segments, flags of the system,
 * addresses of the kernel (sigreturn(2); FIX_EFLAGS in arch/x86/kernel/signal.c: the system's flags are not taken).
 */
#include "contract.h"
#include <ucontext.h>

enum { TF = 1 << 8, IF = 1 << 9, DF = 1 << 10, IOPL = 3 << 12, NT = 1 << 14, VM = 1 << 17, AC = 1 << 18,
    VIF = 1 << 19 };

static unsigned long change, flags_to_set;
static int change_register;

static void handler(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    if (change_register == REG_EFL)
        registers[REG_EFL] |= flags_to_set;
    else
        registers[change_register] = change;
}

static unsigned long flags_now(void)
{
    unsigned long flags;
    __asm__ volatile("pushfq\n\tpop %0" : "=r"(flags));
    return flags;
}

static int sent(void *unused)
{
    (void)unused;
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    need(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    return 0;
}

/* The low two words are CS and GS, then FS and SS. */
#define SEGMENTS(cs, ss) ((unsigned long)(cs) | (unsigned long)(ss) << 48)

static void with(const char *what, int which, unsigned long value)
{
    change_register = which;
    change = value;
    show_status(what, in_child(sent, NULL));
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    need(sigaction(SIGUSR1, &action, NULL) == 0);
    change_register = REG_EFL;
    flags_to_set = IOPL | VM | VIF | NT;
    raise(SIGUSR1);
    say("flags of the system after the return: %#lx", flags_now() & (IOPL | VM | VIF | NT));
    say("interrupts: %s", flags_now() & IF ? "on" : "off");

    with("the same segments", REG_CSGSFS, SEGMENTS(0x33, 0x2b));
    with("code 0x30, whose privilege is raised", REG_CSGSFS, SEGMENTS(0x30, 0x2b));
    with("the kernel's code", REG_CSGSFS, SEGMENTS(0x10, 0x2b));
    with("the kernel's code and stack", REG_CSGSFS, SEGMENTS(0x10, 0x18));
    with("a null code segment", REG_CSGSFS, SEGMENTS(0, 0x2b));
    with("the task as code", REG_CSGSFS, SEGMENTS(0x40, 0x2b));
    with("the kernel's stack", REG_CSGSFS, SEGMENTS(0x33, 0x18));
    with("code of the local table", REG_CSGSFS, SEGMENTS(7, 0x2b));
    with("the kernel's image", REG_RIP, 0xffffffff81000000);
    with("an address that is not canonical", REG_RIP, 0x800000000000);
    with("the last canonical byte", REG_RIP, 0x7fffffffffff);
    with("a stack in the kernel", REG_RSP, 0xffffffff81000000);
    with("a stack that is not canonical", REG_RSP, 0x8000000000000000);
    say("the machine lives");
    return 0;
}
