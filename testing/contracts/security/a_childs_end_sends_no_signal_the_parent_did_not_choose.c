/*
 * clone(2): the exit signal is chosen by the parent for its child. CLONE_PARENT takes the caller's own, a thread has
 * none, a parent that has executed a program since gets SIGCHLD, and so does the process that inherits an orphan.
 */
#include "security.h"

static sigset_t all;

static long make(unsigned long flags, void *stack) { return syscall(SYS_clone, flags, stack, 0, 0, 0); }

/* Which signals came, and how the children that may be waited for ended. */
static void collect(const char *when)
{
    struct timespec limit = { 0, 300000000 };
    siginfo_t info;
    int number, status;
    pid_t child;
    while ((number = sigtimedwait(&all, &info, &limit)) > 0)
        say("%s: %s", when, signal_name(number));
    while ((child = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
        show_status(when, status);
}

static int siblings(void *flags)
{
    long child = make(CLONE_PARENT | *(unsigned long *)flags, NULL);
    if (child == 0)
        _exit(7);
    say("clone: %s", child == -1 ? errno_name(errno) : "ok");
    sleep_ms(50);
    return 0;
}

static char stack[65536] __attribute__((aligned(16)));

static int thread_body(void *unused)
{
    (void)unused;
    sleep_ms(50);
    return 0;
}

static int last_thread(void *number)
{
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    need(clone(thread_body, stack + sizeof stack, flags | *(int *)number, NULL) != -1);
    syscall(SYS_exit, 0);
    return 0;
}

static int third_version(void *unused)
{
    (void)unused;
    /* struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls. */
    uint64_t args[8] = { CLONE_PARENT, 0, 0, 0, SIGUSR1 };
    long child = syscall(SYS_clone3, args, sizeof args);
    if (child == 0)
        _exit(8);
    say("clone3: %s", child == -1 ? errno_name(errno) : "ok");
    return 0;
}

static void chosen(int number)
{
    long child = make(number, NULL);
    need(child != -1);
    if (child == 0) {
        sleep_ms(100);
        _exit(9);
    }
}

static int orphan(void *unused)
{
    (void)unused;
    chosen(SIGUSR2);
    return 0;
}

int main(int count, char **arguments)
{
    sigemptyset(&all);
    for (int number = 1; number < 32; number++)
        if (number != SIGKILL && number != SIGSTOP && number != SIGSEGV)
            sigaddset(&all, number);
    need(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    if (count > 1) {
        collect(arguments[1]);
        return 0;
    }
    unsigned long signal = SIGUSR1;
    int number = SIGTERM;
    section("chosen by the parent");
    chosen(SIGUSR1);
    collect("parent");
    chosen(0);
    collect("parent");
    section("chosen by a child with CLONE_PARENT");
    as_nobody(siblings, &signal);
    collect("parent");
    as_nobody(third_version, NULL);
    collect("parent");
    section("given to a thread that ends last");
    as_nobody(last_thread, &number);
    collect("parent");
    section("inherited");
    need(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    in_child(orphan, NULL);
    collect("subreaper");
    section("chosen before an execution");
    chosen(SIGUSR1);
    execl("/proc/self/exe", "self", "executed", NULL);
    return 99;
}
