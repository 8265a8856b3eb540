/*
 * ptrace(2): a traced child stops at exec and signals, its memory and registers can be read and changed, and it
 * goes on.
 */
#include "../contract.h"
#include <sys/ptrace.h>
#include <sys/user.h>

static volatile long word = 0x1122334455667788;

static int traced(void *unused)
{
    (void)unused;
    need(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    raise(SIGUSR1);
    return word == 0x77 ? 21 : 22;
}

int main(void)
{
    int status;
    pid_t child = spawn(traced, NULL);
    need(waitpid(child, &status, 0) == child);
    show_status("traced child", status);
    errno = 0;
    say("word %lx", ptrace(PTRACE_PEEKDATA, child, (void *)&word, NULL));
    RESULT(ptrace(PTRACE_POKEDATA, child, (void *)&word, (void *)0x77));
    struct user_regs_struct registers;
    RESULT(ptrace(PTRACE_GETREGS, child, NULL, &registers));
    say("in user space %d, on the system call path %d", registers.rip < 1UL << 47, registers.orig_rax != 0);
    RESULT(ptrace(PTRACE_CONT, child, NULL, NULL));
    show_status("signal dropped, word changed", reap(child));
    say("our own word %lx", word);
    child = spawn(traced, NULL);
    need(waitpid(child, &status, 0) == child);
    RESULT(ptrace(PTRACE_CONT, child, NULL, (void *)SIGUSR1));
    show_status("signal delivered", reap(child));
    child = spawn(traced, NULL);
    need(waitpid(child, &status, 0) == child);
    RESULT(ptrace(PTRACE_SYSCALL, child, NULL, NULL));
    need(waitpid(child, &status, 0) == child);
    show_status("system call stop", status);
    RESULT(ptrace(PTRACE_KILL, child, NULL, NULL));
    show_status("killed", reap(child));
    RESULT(ptrace(PTRACE_ATTACH, 9999999, NULL, NULL));
    RESULT(ptrace(PTRACE_CONT, 1, NULL, NULL));
    return 0;
}
