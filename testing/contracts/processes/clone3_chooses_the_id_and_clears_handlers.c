/*
 * clone3(2): set_tid chooses the child's id, for who has CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE: EEXIST for one that
 * is used, also as a group or session; CLONE_CLEAR_SIGHAND resets handlers, keeps what is ignored and excludes
 * CLONE_SIGHAND; CLONE_INTO_CGROUP needs a descriptor of one.
 */
#include "contract.h"
#include <linux/sched.h>

static long call(struct clone_args *args)
{
    long pid = syscall(SYS_clone3, args, sizeof *args);
    if (pid == 0)
        _exit(args->set_tid_size && getpid() != *(pid_t *)(unsigned long)args->set_tid ? 1 : 0);
    if (pid > 0) {
        int status = reap(pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }
    return pid;
}

static long with_ids(pid_t *ids, size_t count)
{
    struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (unsigned long)ids, .set_tid_size = count };
    return call(&args);
}

static long with_id(pid_t id) { return with_ids(&id, 1); }

/* An id that nothing uses. */
static pid_t unused_id(void)
{
    pid_t id = 31000;
    while (kill(id, 0) == 0 || kill(-id, 0) == 0)
        id++;
    return id;
}

static int user(void *id)
{
    need(setresuid(65451, 65451, 65451) == 0);
    RESULT(with_id(*(pid_t *)id));
    RESULT(with_id(0));
    RESULT(with_id(1));
    return 0;
}

static void ignore(int number) { (void)number; }

static int handlers(void *unused)
{
    (void)unused;
    struct sigaction action;
    struct clone_args args = { .flags = 0x100000000ULL, .exit_signal = SIGCHLD };
    catch_signal(SIGUSR1, ignore, SA_RESTART);
    signal(SIGUSR2, SIG_IGN);
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        sigaction(SIGUSR1, NULL, &action);
        say("caught: %s, flags %d", action.sa_handler == SIG_DFL ? "default" : "not default",
            !!(action.sa_flags & SA_RESTART));
        sigaction(SIGUSR2, NULL, &action);
        say("ignored: %s", action.sa_handler == SIG_IGN ? "ignored" : "not ignored");
        _exit(0);
    }
    show_status("child", reap(pid));
    sigaction(SIGUSR1, NULL, &action);
    say("the parent's: %s", action.sa_handler == ignore ? "kept" : "lost");
    args.flags |= CLONE_SIGHAND | CLONE_VM;
    RESULT(call(&args));
    return 0;
}

int main(void)
{
    pid_t id = unused_id(), two[33];
    struct clone_args args = { .exit_signal = SIGCHLD };
    for (size_t i = 0; i < COUNT_OF(two); i++)
        two[i] = id;
    section("set_tid");
    RESULT(with_id(id));
    RESULT(with_id(id));
    RESULT(with_id(0));
    RESULT(with_id(-5));
    RESULT(with_id(1));
    RESULT(with_id(getpid()));
    RESULT(with_id(getppid()));
    RESULT(with_id(1 << 30));
    RESULT(with_ids(two, 2));
    RESULT(with_ids(two, 32));
    RESULT(with_ids(two, 33));
    RESULT(with_ids(NULL, 1));
    RESULT(with_ids(two, 0));
    RESULT(with_ids(BAD_POINTER, 1));
    show_status("user", in_child(user, &id));
    section("a group keeps its id");
    pid_t leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        if (fork() == 0) {
            sleep_ms(3000);
            _exit(0);
        }
        _exit(0);
    }
    reap(leader);
    RESULT(with_id(leader));
    RESULT(kill(-leader, SIGKILL));
    sleep_ms(100);
    section("CLONE_CLEAR_SIGHAND");
    show_status("handlers", in_child(handlers, NULL));
    section("CLONE_INTO_CGROUP");
    args.flags = 0x200000000ULL;
    args.cgroup = 1ULL << 31;
    RESULT(call(&args));
    args.cgroup = 999;
    RESULT(call(&args));
    args.cgroup = 1;
    RESULT(call(&args));
    return 0;
}
