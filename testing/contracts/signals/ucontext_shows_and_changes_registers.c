/* sigaction(2), getcontext(3): a handler sees the interrupted registers and what it changes is what resumes. */
#include "../contract.h"
#include <ucontext.h>

extern char faulting_load[], after_load[];

static void repair(int number, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;
    greg_t *registers = context->uc_mcontext.gregs;
    (void)info;
    say("%s at the expected instruction %d", signal_name(number),
        registers[REG_RIP] == (greg_t)(uintptr_t)faulting_load);
    say("rbx %llx r12 %llx rax %llx", registers[REG_RBX], registers[REG_R12], registers[REG_RAX]);
    say("error code %llx trap %lld address %llx", registers[REG_ERR], registers[REG_TRAPNO], registers[REG_CR2]);
    registers[REG_RAX] = 0x1234;
    registers[REG_RIP] = (greg_t)(uintptr_t)after_load;
    sigaddset(&context->uc_sigmask, SIGUSR2);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = repair, .sa_flags = SA_SIGINFO };
    need(sigaction(SIGSEGV, &action, NULL) == 0);
    unsigned long result = 0x10;
    __asm__ volatile("mov $0xb0b0, %%rbx\n mov $0xc12, %%r12\n"
                     ".globl faulting_load\nfaulting_load: mov (%%rax), %%rax\n"
                     ".globl after_load\nafter_load:\n"
                     : "+a"(result)
                     :
                     : "rbx", "r12", "memory");
    say("resumed with %lx", result);
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    show("mask edited by the handler", sigismember(&set, SIGUSR2));
    return 0;
}
