/*
 * Flags a program sets do not steer the kernel: TF does not step through a call, DF does not turn its copies round, NT
 * does not break its returns, AC does not open user memory; and a handler starts with DF and TF clear (System V ABI).
 */
#include "contract.h"
#include <ucontext.h>

enum { TF = 1 << 8, DF = 1 << 10, NT = 1 << 14, AC = 1 << 18 };

static volatile int traps, kernel_addresses;
static volatile unsigned long flags_at_start;

static void stepped(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    traps++;
    kernel_addresses += (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] >> 47 != 0;
    __asm__ volatile("pushfq\n\tpop %0" : "=r"(flags_at_start));
}

static long call_with(unsigned long flags, long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq %[flags], (%%rsp)\n\tpopfq\n\tsyscall\n\t"
                     "pushfq\n\tandq %[clear], (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), [flags] "r"(flags),
                       [clear] "r"(~(unsigned long)(TF | DF | NT | AC))
                     : "rcx", "r11", "memory", "cc");
    return result;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = stepped, .sa_flags = SA_SIGINFO };
    need(sigaction(SIGTRAP, &action, NULL) == 0);
    int ends[2];
    char there[512], back[512];
    need(pipe(ends) == 0);
    static const unsigned long flags[] = { DF, NT, AC, DF | NT | AC, TF, TF | DF | NT | AC };
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        traps = kernel_addresses = 0;
        memset(there, 'a' + i, sizeof there);
        memset(back, 0, sizeof back);
        long wrote = call_with(flags[i], SYS_write, ends[1], (long)there, sizeof there);
        long read = call_with(flags[i], SYS_read, ends[0], (long)back, sizeof back);
        say("flags %#lx: wrote %ld, read %ld, %s", flags[i], wrote, read,
            memcmp(there, back, sizeof there) ? "other" : "same");
        say("  stepped %d, in the kernel %d", traps > 0, kernel_addresses);
        if (traps)
            say("  a handler starts with %#lx", flags_at_start & (TF | DF));
        say("  a bad pointer: %ld", call_with(flags[i], SYS_write, ends[1], (long)BAD_POINTER, 8));
        say("  a kernel's: %ld", call_with(flags[i], SYS_write, ends[1], (long)0xffff800000100000, 8));
    }
    /* A load of SS holds debug traps back for one instruction, which is the call. */
    traps = kernel_addresses = 0;
    long result;
    unsigned ss;
    __asm__ volatile("mov %%ss, %0" : "=r"(ss));
    __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tmov %[ss], %%ss\n\tsyscall\n\t"
                     "pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
                     : "=a"(result) : "0"((long)SYS_getppid), [ss] "r"(ss) : "rcx", "r11", "memory", "cc");
    say("held back: %s, in the kernel %d", result > 0 ? "answered" : "failed", kernel_addresses);
    return 0;
}
