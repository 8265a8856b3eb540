/*
 * sigaction(2), sigprocmask(2), sigaltstack(2), rt_sigqueueinfo(2), sigtimedwait(2): sizes, numbers, flags and
 * pointers that are refused; only a process itself may pretend that the kernel sent a signal.
 */
#include "contract.h"

static char stack[65536];
static void try_in_handler(int number)
{
    (void)number;
    stack_t other = { .ss_sp = stack, .ss_size = sizeof stack }, old;
    RESULT(sigaltstack(&other, NULL));
    RESULT(sigaltstack(NULL, &old));
    show("on it", old.ss_flags);
}

static long queue(pid_t pid, int number, int code)
{
    siginfo_t info = { .si_signo = number, .si_code = code };
    return syscall(SYS_rt_sigqueueinfo, pid, number, &info);
}

static int idle(void *unused)
{
    (void)unused;
    pause();
    return 0;
}

int main(void)
{
    uint64_t set = 0, old;
    char action[32] = { 0 };
    section("sizes");
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, NULL, action, 4));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, NULL, action, 16));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4));
    RESULT(syscall(SYS_rt_sigprocmask, 77, &set, NULL, 4));
    RESULT(syscall(SYS_rt_sigpending, &old, 4));
    RESULT(syscall(SYS_rt_sigpending, &old, 9));
    RESULT(syscall(SYS_rt_sigsuspend, &set, 4));
    RESULT(syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 4));
    section("numbers and pointers");
    RESULT(syscall(SYS_rt_sigaction, 0, NULL, action, 8));
    RESULT(syscall(SYS_rt_sigaction, 65, NULL, action, 8));
    RESULT(syscall(SYS_rt_sigaction, -1, NULL, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGKILL, NULL, action, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGKILL, action, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGSTOP, action, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, BAD_POINTER, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, 65, BAD_POINTER, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, NULL, BAD_POINTER, 8));
    RESULT(syscall(SYS_rt_sigprocmask, 77, &set, NULL, 8));
    RESULT(syscall(SYS_rt_sigprocmask, 77, NULL, &old, 8));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, BAD_POINTER, NULL, 8));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, BAD_POINTER, 8));
    RESULT(syscall(SYS_rt_sigpending, BAD_POINTER, 8));
    RESULT(syscall(SYS_rt_sigsuspend, BAD_POINTER, 8));
    struct timespec none = { 0, 0 }, wrong = { 0, 1000000000 }, negative = { -1, 0 };
    RESULT(syscall(SYS_rt_sigtimedwait, &set, NULL, &none, 8));
    RESULT(syscall(SYS_rt_sigtimedwait, &set, NULL, &wrong, 8));
    RESULT(syscall(SYS_rt_sigtimedwait, &set, NULL, &negative, 8));
    RESULT(syscall(SYS_rt_sigtimedwait, BAD_POINTER, NULL, &none, 8));
    RESULT(syscall(SYS_rt_sigtimedwait, &set, NULL, BAD_POINTER, 8));
    section("sigqueueinfo");
    signal(SIGUSR1, SIG_IGN);
    pid_t child = spawn(idle, NULL);
    RESULT(queue(getpid(), SIGUSR1, SI_USER));
    RESULT(queue(getpid(), SIGUSR1, SI_KERNEL));
    RESULT(queue(child, 0, SI_QUEUE));
    RESULT(queue(child, 0, SI_USER));
    RESULT(queue(child, 0, SI_KERNEL));
    RESULT(queue(child, 0, SI_TKILL));
    RESULT(queue(child, 65, SI_QUEUE));
    RESULT(queue(child, 65, SI_USER));
    RESULT(queue(0x3fffffff, 0, SI_QUEUE));
    RESULT(syscall(SYS_rt_sigqueueinfo, child, 0, BAD_POINTER));
    siginfo_t info = { .si_code = SI_QUEUE };
    RESULT(syscall(SYS_rt_tgsigqueueinfo, child, child, 0, &info));
    RESULT(syscall(SYS_rt_tgsigqueueinfo, child, getpid(), 0, &info));
    RESULT(syscall(SYS_rt_tgsigqueueinfo, -1, child, 0, &info));
    RESULT(syscall(SYS_rt_tgsigqueueinfo, child, 0, 0, &info));
    kill(child, SIGKILL);
    reap(child);
    section("sigaltstack");
    stack_t good = { .ss_sp = stack, .ss_size = sizeof stack }, small = { .ss_sp = stack, .ss_size = 2047 },
        flags = { .ss_sp = stack, .ss_size = sizeof stack, .ss_flags = 8 }, off = { .ss_flags = SS_DISABLE },
        onstack = { .ss_sp = stack, .ss_size = sizeof stack, .ss_flags = SS_ONSTACK };
    RESULT(sigaltstack(&small, NULL));
    RESULT(sigaltstack(&flags, NULL));
    RESULT(sigaltstack(BAD_POINTER, NULL));
    RESULT(sigaltstack(NULL, BAD_POINTER));
    RESULT(sigaltstack(&onstack, NULL));
    RESULT(sigaltstack(&good, NULL));
    catch_signal(SIGUSR2, try_in_handler, SA_ONSTACK);
    raise(SIGUSR2);
    RESULT(sigaltstack(&off, NULL));
    stack_t now;
    RESULT(sigaltstack(NULL, &now));
    show("off", now.ss_flags);
    return 0;
}
