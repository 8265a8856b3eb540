/*
 * fork(2), credentials(7): no process gets the number of a group or session that still has members. However many such
 * numbers follow each other, the fork that has to pass over them takes no longer than others.
 *
 * contract: timeout=60
 */
#include "../contract.h"
#include <linux/sched.h>
#include <sys/prctl.h>

/* Sessions whose leaders are gone, each with the member that keeps its number. */
#define SESSIONS 1500
#define SLOW 150

/* Makes a leader with one number, which leads a session, makes a member with another, and ends. Both use the memory of
 * their maker, and no stack. */
static long make_session(struct clone_args *leader, struct clone_args *member)
{
    register struct clone_args *second __asm__("r12") = member;
    long made = SYS_clone3;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "mov $112, %%eax\n\t"
                     "syscall\n\t"
                     "mov %%r12, %%rdi\n\t"
                     "mov %[size], %%esi\n\t"
                     "mov $435, %%eax\n\t"
                     "syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jz 2f\n\t"
                     "xor %%edi, %%edi\n\t"
                     "mov $60, %%eax\n\t"
                     "syscall\n"
                     "2:\n\t"
                     "mov $34, %%eax\n\t"
                     "syscall\n\t"
                     "jmp 2b\n"
                     "1:"
                     : "+a"(made)
                     : "D"(leader), "S"(sizeof *leader), "r"(second), [size] "i"(sizeof *member)
                     : "rcx", "r11", "memory");
    return made;
}

static int nothing(void *unused) { return unused != NULL; }

int main(void)
{
    need(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    /* Numbers that come next, or soon after the least ones came again. */
    pid_t first = getpid() < 27000 ? getpid() + 500 : 600, end = first + 2 * SESSIONS;
    for (pid_t id = first; id < end; id += 2) {
        pid_t ids[2] = { id, id + 1 };
        struct clone_args args[2];
        memset(args, 0, sizeof args);
        for (int at = 0; at < 2; at++) {
            args[at].flags = CLONE_VM;
            args[at].exit_signal = SIGCHLD;
            args[at].set_tid = (unsigned long)&ids[at];
            args[at].set_tid_size = 1;
        }
        need(make_session(&args[0], &args[1]) == id && reap(id) == 0);
    }
    int slow = 0, inside = 0, others = 0;
    pid_t last = 0;
    while (last < end || last > end + SESSIONS) {
        long long before = elapsed_ms();
        last = spawn(nothing, NULL);
        slow += elapsed_ms() - before > SLOW;
        inside += last >= first && last < end;
        others += reap(last) != 0;
    }
    show("numbers of sessions given away", inside);
    show("slow forks", slow);
    show("children that failed", others);
    for (pid_t id = first + 1; id < end; id += 2)
        need(kill(id, SIGKILL) == 0);
    for (int left = SESSIONS; left > 0; left--)
        need(waitpid(-1, NULL, 0) > first);
    return 0;
}
