/*
 * Makes a call and keeps what it returned; calls that end, copy or replace the process are made so that it goes on.
 */
#include "fuzz.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/*
 * Makes a clone of any kind. Without a body, or if it returns, the child exits at once and has touched no stack; with
 * one it must have a stack of its own. In the parent, what the call returned.
 */
static long clone_call(long number, const long *a, void (*body)(void *), void *argument)
{
    long result;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register void *rbody __asm__("r12") = (void *)body;
    register void *rarg __asm__("r13") = argument;
    __asm__ volatile("syscall\n test %%rax, %%rax\n jnz 1f\n test %%r12, %%r12\n jz 2f\n"
                     " xor %%ebp, %%ebp\n and $-16, %%rsp\n mov %%r13, %%rdi\n call *%%r12\n"
                     "2: xor %%edi, %%edi\n mov $60, %%eax\n syscall\n hlt\n1:\n"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(rbody), "r"(rarg)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

long spawn(unsigned long flags, unsigned long stack, void (*body)(void *), void *argument)
{
    long words[5] = { (long)flags, (long)stack, 0, 0, 0 };
    return clone_call(SYS_clone, words, body, argument);
}

static void note_child(struct step *step, long pid)
{
    program.children[below(step, CHILDREN)] = (int)pid;
}

/* The copy of a process goes on for a few steps of its own. */
__attribute__((noreturn)) static void go_on(struct step *step)
{
    long every[4] = { 0, 10000, 0, 10000 }; /* The only wake-up it gets. */
    raw(SYS_setitimer, 0, every, 0);
    program.depth++;
    program.branch = mix(program.branch, (uint64_t)step->at + 1);
    if (program.depth <= 2)
        run_steps(step->self, step->at + 1, step->at + 9);
    raw(SYS_exit_group, 0);
    __builtin_trap();
}

/* A child that shares the memory makes some harmless calls on the stack it was given. */
static void share(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20; i++) {
        own_tid();
        raw(SYS_futex, program.areas[1].at, 1 /* wake */, 1);
        raw(SYS_sched_yield);
    }
}

/* Waits a little for a child; its status, or -1. */
static int status_of(long child)
{
    struct timespec pause = { 0, 1000000 };
    for (int i = 0; i < 60; i++) {
        int status = 0;
        long got = raw(SYS_wait4, child, &status, WNOHANG, 0);
        if (got != 0)
            return got == child ? status : -1;
        raw(SYS_nanosleep, &pause, 0);
    }
    raw(SYS_kill, child, SIGKILL);
    return -1;
}

static long any_clone(struct step *step, const long *arguments)
{
    int number = step->call->number;
    unsigned long flags = number == SYS_clone ? (unsigned long)arguments[0] : SIGCHLD;
    if (number == SYS_clone3) {
        const unsigned long *words = (const unsigned long *)arguments[0];
        bool own = arguments[0] >= (long)step->self->scratch && arguments[0] < (long)(step->self->scratch + SCRATCH);
        flags = own ? words[0] : CLONE_VM; /* What is not known may be shared. */
    }
    if (number == SYS_vfork || (flags & (CLONE_VM | CLONE_VFORK))) {
        bool stack = number == SYS_clone && arguments[1] != 0;
        return clone_call(number, arguments, stack ? share : NULL, NULL);
    }
    long result = call6(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], 0);
    if (result == 0)
        go_on(step);
    return result;
}

/* In a copy of the process, which is gone afterwards; 0 when it ended as `call` does on success. */
static long in_child(struct step *step, const long *a, void (*instead)(struct step *))
{
    long child = raw(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        program.depth++;
        if (instead)
            instead(step);
        long result = call6(step->call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
        raw(SYS_exit_group, failed(result) ? 34 : 35);
    }
    if (failed(child))
        return child;
    note_child(step, child);
    int status = status_of(child);
    if (status == -1)
        return -4;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 40) /* What exec led to has a privilege: the supervisor is told. */
        raw(SYS_exit_group, 40);
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) != 34 && WEXITSTATUS(status) != 35;
    return ended ? 0 : -14;
}

static void keep(struct step *step, const long *arguments, long result)
{
    const struct call *call = step->call;
    int slot = (int)below(step, DESCRIPTORS - FIXED_DESCRIPTORS);
    bool close = chance(step, 50);
    if (failed(result))
        return;
    if (call->result == RESULT_FD) {
        int old = program.fds[FIXED_DESCRIPTORS + slot];
        program.fds[FIXED_DESCRIPTORS + slot] = (int)result;
        if (close && old > 2 && old != result)
            raw(SYS_close, old);
    } else if (call->result == RESULT_ADDRESS && call->number != SYS_brk) {
        note_area(slot % (AREAS - FIXED_AREAS), (unsigned long)result, (unsigned long)arguments[1]);
    } else if (call->result == RESULT_PID && result > 1 && call->number != SYS_getppid) {
        program.children[slot % CHILDREN] = (int)result;
    }
}

long make_call(struct step *step, long *a)
{
    long result;
    switch (step->call->number) {
    case SYS_fork: case SYS_vfork: case SYS_clone: case SYS_clone3:
        result = any_clone(step, a);
        break;
    case SYS_execve: case SYS_execveat:
        if (chance(step, 3))
            return call6(step->call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
        return in_child(step, a, NULL);
    case SYS_exit: case SYS_exit_group:
        return in_child(step, a, NULL);
    case SYS_rt_sigreturn:
        return in_child(step, a, break_frame);
    default:
        result = call6(step->call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    keep(step, a, result);
    return result;
}
