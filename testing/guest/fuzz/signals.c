/*
 * Handlers for everything, and frames on the stack that come back changed.
 */
#include "fuzz.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

static struct step *breaking;

__attribute__((naked)) static void restorer(void)
{
    __asm__("mov $15, %eax\n syscall");
}

static void on_signal(int signal)
{
    if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE)
        raw(SYS_exit_group, 32);
    if (program.board)
        count(call_index(SYS_rt_sigreturn), 0);
}

static void set_action(int signal, void *handler, unsigned long flags)
{
    struct { void *handler; unsigned long flags; void *restorer; uint64_t mask; } action = {
        handler, flags | 0x04000000, (void *)restorer, 0,
    };
    raw(SYS_rt_sigaction, signal, &action, 0, 8);
}

void catch_signals(void)
{
    for (int signal = 1; signal <= 64; signal++)
        if (signal != SIGKILL && signal != SIGSTOP && (program.handles || signal == SIGALRM))
            set_action(signal, (void *)on_signal, 0);
}

/* Changes words of what rt_sigreturn will read, mostly those that say where to go and with which rights. */
static void on_break(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    static const int registers[] = { REG_RIP, REG_RSP, REG_EFL, REG_CSGSFS, REG_ERR, REG_TRAPNO, REG_OLDMASK, REG_CR2 };
    static const unsigned long words[] = {
        0, ~0UL, 0x800000000000, 0x7fffffffffff, 0xffffffff81000000, 0xffff800000000000, 0x8000000000000000, 0x10,
        0x33, 0x2b,
        0x23, 0x08, 0x18, 0x200, 0x3000, 0x247fd7, 0x40000, 0x20000, 0x100, 0x4000, 0x1b, 0x3b, 0x43,
    };
    ucontext_t *frame = context;
    greg_t *saved = frame->uc_mcontext.gregs;
    for (int left = 1 + (int)below(breaking, 3); left > 0; left--) {
        unsigned long word = chance(breaking, 80) ? words[below(breaking, sizeof words / sizeof words[0])]
            : any(breaking);
        unsigned which = below(breaking, 10);
        if (which < 5)
            saved[registers[below(breaking, 8)]] = (greg_t)word;
        else if (which < 6)
            frame->uc_flags = word;
        else if (which < 7)
            frame->uc_mcontext.fpregs = (void *)choose_address(breaking, 512);
        else if (frame->uc_mcontext.fpregs) /* The processor's own image: control words, sizes, the extended header. */
            memcpy((char *)frame->uc_mcontext.fpregs + (below(breaking, 104) * 8), &word, 8);
    }
}

/* Runs in a child: takes a signal whose frame is changed under way. */
void break_frame(struct step *step)
{
    breaking = step;
    set_action(SIGUSR2, (void *)on_break, SA_SIGINFO);
    uint64_t none = 0;
    raw(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    for (int i = 0; i < 3; i++)
        raw(SYS_tgkill, own_pid(), own_tid(), SIGUSR2);
    raw(SYS_exit_group, 0);
}
