/*
 * Plans a program from its seed and runs its steps, or writes them down.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program program;

/* Calls that belong together: a program that favours one subject gets further in it than one that tries everything. */
static const char *const subjects[] = {
    "mmap munmap mprotect mremap madvise msync mincore mlock brk process_vm_readv process_vm_writev read pwrite64 "
    "futex fork "
    "memfd_create ftruncate fallocate clone mlockall",
    "futex futex set_robust_list get_robust_list mprotect munmap madvise mmap fork clone tgkill set_tid_address "
    "rt_sigaction",
    "rt_sigaction rt_sigprocmask rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo kill tgkill tkill sigaltstack "
    "signalfd4 pause "
    "rt_sigsuspend rt_sigpending rt_sigreturn fcntl read timer_create timer_settime setitimer fork pidfd_send_signal",
    "socket socketpair bind listen accept4 connect sendmsg recvmsg sendto recvfrom shutdown close dup setsockopt "
    "getsockopt "
    "sendmmsg recvmmsg getsockname getpeername fcntl epoll_ctl fork",
    "epoll_create1 epoll_ctl epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd2 timerfd_create timerfd_settime "
    "signalfd4 poll "
    "ppoll select pselect6 read write fcntl dup close pipe2 ioctl tgkill",
    "openat open creat openat2 read write lseek truncate ftruncate fallocate rename renameat2 link unlink mkdir "
    "rmdir symlink "
    "readlink chmod chown utimensat statx getdents64 flock fcntl copy_file_range sendfile chdir linkat unlinkat "
    "mknodat",
    "fork vfork clone clone3 execve execveat wait4 waitid kill setpgid setsid prctl pidfd_open pidfd_send_signal "
    "exit_group "
    "exit unshare prlimit64 sched_setaffinity setpriority",
    "timer_create timer_settime timer_gettime timer_delete timer_getoverrun setitimer alarm timerfd_create "
    "timerfd_settime "
    "nanosleep clock_nanosleep clock_gettime read poll rt_sigtimedwait",
    "pipe2 read write readv writev preadv2 pwritev2 sendfile copy_file_range fcntl poll close dup2 ioctl fork tgkill",
    "ioctl ioctl ioctl read write poll fcntl dup close setsid setpgid openat kill fork",
    "setuid setgid setreuid setresuid setfsuid setgroups capset capget prctl kill process_vm_writev openat chown "
    "chmod execve "
    "mount umount2 chroot sethostname reboot setns unshare ptrace pidfd_getfd prlimit64 setpriority sched_setscheduler",
    "mq_open mq_timedsend mq_timedreceive mq_notify mq_getsetattr mq_unlink poll fork close rt_sigaction",
    "setxattr getxattr listxattr removexattr fsetxattr fgetxattr flistxattr fremovexattr lsetxattr lgetxattr openat "
    "unlink",
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static void add_subject(const char *words)
{
    char name[32];
    for (int used; program.set_size < 64 && sscanf(words, "%31s%n", name, &used) == 1; words += used) {
        int row = call_named(name);
        if (row >= 0)
            program.set[program.set_size++] = row;
    }
}

/* "all", or parts "THREAD:FROM-TO" with commas between. */
static void choose_steps(const char *spec)
{
    bool all = strcmp(spec, "all") == 0;
    memset(program.chosen, all, sizeof program.chosen);
    int thread, from, to, used;
    while (!all && sscanf(spec, "%d:%d-%d%n", &thread, &from, &to, &used) == 3) {
        for (int at = from; at <= to; at++)
            if (thread >= 0 && thread < THREADS && at >= 0 && at < STEPS)
                program.chosen[thread][at] = 1;
        spec += used;
        spec += *spec == ',';
    }
}

void plan(uint64_t seed, int number, const char *spec)
{
    struct step step = { .random = mix(seed, (uint64_t)number) };
    static const uint8_t threads[] = { 1, 1, 2, 2, 2, 3 };
    program.seed = step.random;
    program.number = number;
    program.threads = threads[below(&step, 6)];
    program.steps = 30 + (int)below(&step, STEPS - 50);
    program.focused = chance(&step, 60);
    program.handles = chance(&step, 80);
    for (int i = 0; i < 3; i++)
        program.hot_fds[i] = (int)below(&step, DESCRIPTORS);
    for (int i = 0; i < 2; i++)
        program.hot_areas[i] = (int)below(&step, AREAS);
    unsigned first = below(&step, SUBJECTS), second = below(&step, SUBJECTS);
    if (chance(&step, 65))
        add_subject(subjects[first]);
    if (chance(&step, 25))
        add_subject(subjects[second]);
    choose_steps(spec);
    place_areas();
}

/* Names of calls, each behind a comma. */
void leave_out(const char *names)
{
    char name[32];
    for (int used; sscanf(names, ",%31[^,]%n", name, &used) == 1; names += used) {
        int row = call_named(name);
        if (row >= 0)
            program.without[row] = true;
    }
}

/* Calls that are there, one in fifty of the others, and mostly those that the program favours. */
static int choose_row(struct step *step)
{
    if (program.set_size && chance(step, 75))
        return program.set[below(step, (unsigned)program.set_size)];
    bool other = chance(step, 2);
    int row;
    do
        row = (int)below(step, (unsigned)call_count);
    while (!calls[row].answered && !other);
    return row;
}

static struct step begin(struct thread *self, int at)
{
    uint64_t where = (uint64_t)self->index << 16 | (uint64_t)at;
    return (struct step){ .random = mix(mix(program.seed, where), program.branch), .self = self, .at = at };
}

void count(int row, long result)
{
    if (row < 0)
        return;
    struct count *count = &program.board->counts[row];
    __atomic_add_fetch(&count->made, 1, __ATOMIC_RELAXED);
    if (!failed(result))
        __atomic_add_fetch(&count->succeeded, 1, __ATOMIC_RELAXED);
    else if (-result < 192)
        __atomic_or_fetch(&count->errors[-result / 64], 1ULL << -result % 64, __ATOMIC_RELAXED);
}

void run_steps(struct thread *self, int from, int until)
{
    struct place *place = &program.board->places[program.slot];
    for (int at = from; at < until && at < program.steps; at++) {
        self->moved++;
        if (!program.chosen[self->index][at])
            continue;
        struct step step = begin(self, at);
        long arguments[6] = { 0 };
        int row = choose_row(&step);
        if (program.without[row])
            continue;
        step.call = &calls[row];
        choose_arguments(&step, arguments);
        prepare(&step, arguments);
        if (program.depth == 0) {
            place->thread = self->index;
            place->step = at;
            place->call = row;
        }
        count(row, make_call(&step, arguments));
    }
}

void describe(void)
{
    static char text[4096];
    printf("program %d: %d threads of %d steps%s\n", program.number, program.threads, program.steps,
           program.handles ? ", signals are caught" : "");
    for (int thread = 0; thread < program.threads; thread++)
        for (int at = 0; at < program.steps; at++) {
            if (!program.chosen[thread][at])
                continue;
            program.thread[thread].index = thread;
            struct step step = begin(&program.thread[thread], at);
            long arguments[6] = { 0 };
            step.text = text;
            step.room = sizeof text;
            text[0] = 0;
            step.call = &calls[choose_row(&step)];
            choose_arguments(&step, arguments);
            printf("%d:%d %s(%s)\n", thread, at, step.call->name, text);
        }
}
