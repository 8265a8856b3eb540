/*
 * All arguments of a call: by their kinds, and by what one of them means for another.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static bool is(const struct argument *argument, const char *name)
{
    return strcmp(argument->name, name) == 0;
}

/* Sizes that the kernel wants exactly. */
static long fixed_size(const struct call *call, const struct argument *argument)
{
    if (is(argument, "sigsetsize") || is(argument, "sizemask") || is(argument, "cpusetsize"))
        return 8;
    if (call->number == SYS_set_robust_list || call->number == SYS_openat2)
        return 24;
    if (call->number == SYS_clone3)
        return 88;
    if (is(argument, "optlen"))
        return 4;
    return call->number == SYS_rseq ? 32 : 0;
}

static long a_word(struct step *step)
{
    unsigned which = below(step, 10);
    if (which < 6) {
        say(step, "0");
        return 0;
    }
    return which < 8 ? choose_number(step) : (long)choose_address(step, 8);
}

static long one(struct step *step, const struct argument *argument)
{
    long fixed = fixed_size(step->call, argument);
    if ((argument->kind == KIND_SIZE || argument->kind == KIND_UINT) && (fixed || step->length) && chance(step, 92)) {
        long length = fixed ? fixed : (long)step->length;
        step->length = 0;
        say(step, "%#lx", length);
        return length;
    }
    switch (argument->kind) {
    case KIND_FD: return choose_fd(step);
    case KIND_DIR_FD: return choose_dir_fd(step);
    case KIND_PATH: return (long)choose_path(step);
    case KIND_STR: return (long)choose_string(step, argument->name);
    case KIND_PTR: return (long)choose_structure(step, argument->name);
    case KIND_SIZE: return choose_size(step);
    case KIND_OFFSET: return choose_offset(step);
    case KIND_MODE: {
        static const long modes[] = { 0644, 0600, 0777, 0, 04755, 02755, 01777, 010644, 020644, 060644, 0140644, 0177777, -1 };
        long mode = modes[below(step, sizeof modes / sizeof modes[0])];
        say(step, "0%lo", mode);
        return mode;
    }
    case KIND_PID: return choose_pid(step);
    case KIND_ID: return choose_id(step);
    case KIND_SIGNAL: return choose_signal(step);
    case KIND_FLAGS: return choose_flags(step, argument->flags, false);
    case KIND_CLONE_FLAGS: return choose_flags(step, argument->flags, true);
    case KIND_TIME: return choose_time(step);
    case KIND_HEX: return a_word(step);
    default: return choose_number(step);
    }
}

static void map(struct step *step, long *arguments)
{
    unsigned long length;
    bool fixed = chance(step, 55);
    arguments[0] = (long)choose_range(step, &length);
    arguments[1] = (long)length;
    if (!fixed && chance(step, 85))
        arguments[0] = 0;
    arguments[2] = chance(step, 80) ? below(step, 8) : choose_flags(step, step->call->arguments[2].flags, false);
    arguments[3] = chance(step, 75) ? MAP_PRIVATE : MAP_SHARED;
    arguments[3] |= (fixed ? MAP_FIXED : 0) | (chance(step, 60) ? MAP_ANONYMOUS : 0) | (chance(step, 15) ? MAP_POPULATE : 0);
    if (chance(step, 15))
        arguments[3] ^= choose_flags(step, step->call->arguments[3].flags, false);
    arguments[4] = arguments[3] & MAP_ANONYMOUS && chance(step, 80) ? -1 : choose_fd(step);
    arguments[5] = chance(step, 85) ? (long)(PAGE * below(step, 4)) : choose_offset(step);
    say(step, " = %#lx, %#lx, %ld, %#lx, %ld, %#lx", arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
        arguments[5]);
}

/* The third argument of fcntl is whatever the second says. */
static long control_argument(struct step *step, long command)
{
    switch (command) {
    case F_DUPFD: case F_DUPFD_CLOEXEC: return chance(step, 90) ? 50 + below(step, 60) : choose_number(step);
    case F_SETFL: return choose_flags(step, calls[call_index(SYS_openat)].arguments[2].flags, false);
    case F_SETSIG: return choose_signal(step);
    case F_SETOWN: return choose_pid(step);
    case F_GETLK: case F_SETLK: case F_SETLKW: case 36: case 37: case 38: {
        struct flock *lock = memset(scratch(step, sizeof *lock), 0, sizeof *lock);
        lock->l_type = (short)below(step, 3);
        lock->l_whence = (short)below(step, 3);
        lock->l_start = chance(step, 80) ? below(step, 16) : choose_offset(step);
        lock->l_len = chance(step, 80) ? below(step, 8) : choose_offset(step);
        say(step, "{lock %d, %ld+%ld}", lock->l_type, (long)lock->l_start, (long)lock->l_len);
        return chance(step, 92) ? (long)lock : (long)choose_address(step, sizeof *lock);
    }
    case F_SETOWN_EX: case F_GETOWN_EX: {
        int *owner = scratch(step, 8);
        owner[0] = (int)below(step, 3);
        owner[1] = (int)choose_pid(step);
        return (long)owner;
    }
    case F_SETPIPE_SZ: return choose_size(step);
    case F_ADD_SEALS: return below(step, 64);
    default: return a_word(step);
    }
}

static void pair_of_kinds(struct step *step, long *arguments)
{
    static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
    arguments[0] = chance(step, 70) || step->call->number == SYS_socketpair ? AF_UNIX : AF_INET;
    arguments[1] = types[below(step, 3)] | (chance(step, 60) ? SOCK_NONBLOCK : 0);
    arguments[2] = 0;
    say(step, " = %ld, %#lx, 0", arguments[0], arguments[1]);
}

/* Corrects what the kinds alone choose badly. */
static void correct(struct step *step, long *arguments)
{
    switch (step->call->number) {
    case SYS_mmap: map(step, arguments); break;
    case SYS_fcntl:
        say(step, ", = ");
        arguments[2] = control_argument(step, arguments[1]);
        break;
    case SYS_socket: case SYS_socketpair:
        if (chance(step, 75))
            pair_of_kinds(step, arguments);
        break;
    case SYS_close:
        if (chance(step, 75))
            arguments[0] = program.fds[FIXED_DESCRIPTORS + below(step, DESCRIPTORS - FIXED_DESCRIPTORS)];
        break;
    case SYS_close_range:
        if (chance(step, 85)) {
            arguments[0] = program.fds[below(step, DESCRIPTORS)];
            arguments[1] = arguments[0] + below(step, 2);
            arguments[2] = chance(step, 80) ? 0 : arguments[2];
        }
        break;
    case SYS_dup2: case SYS_dup3:
        if (chance(step, 80))
            arguments[1] = 60 + below(step, 50);
        break;
    case SYS_accept: case SYS_accept4: case SYS_listen:
        if (chance(step, 70))
            arguments[0] = program.fds[19];
        if (chance(step, 50) && step->call->number != SYS_listen)
            arguments[1] = arguments[2] = 0;
        break;
    case SYS_exit: case SYS_exit_group:
        arguments[0] &= 31; /* Higher ones have a meaning. */
        break;
    case SYS_kill: case SYS_rt_sigqueueinfo:
        if (arguments[0] == -1 && chance(step, 70))
            arguments[0] = 0;
        break;
    case SYS_personality:
        if (chance(step, 70))
            arguments[0] = -1;
        break;
    case SYS_getcwd: case SYS_uname: case SYS_getresuid: case SYS_getresgid: case SYS_pipe: case SYS_mq_getsetattr:
        /* Success needs every pointer to be good at once. */
        for (int i = 0; chance(step, 50) && i < step->call->count; i++)
            if (step->call->arguments[i].kind == KIND_PTR)
                arguments[i] = (long)program.areas[0].at + 256 * i;
        break;
    }
}

void choose_arguments(struct step *step, long *arguments)
{
    step->length = 0;
    for (int i = 0; i < step->call->count; i++) {
        say(step, i ? ", " : "");
        arguments[i] = one(step, &step->call->arguments[i]);
    }
    correct(step, arguments);
}

static void connect_once(const long *arguments)
{
    uint8_t name[12] = { AF_UNIX, 0, 0, 'f' };
    memcpy(name + 4, &program.number, sizeof program.number);
    (void)arguments;
    long fd = raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    raw(SYS_connect, fd, name, 12);
    if (fd >= 0 && program.fds[FIXED_DESCRIPTORS] < 0)
        program.fds[FIXED_DESCRIPTORS] = (int)fd;
    else if (fd >= 0)
        raw(SYS_close, fd);
}

/* What makes a call find something to do. */
void prepare(struct step *step, const long *arguments)
{
    if (!chance(step, 50))
        return;
    switch (step->call->number) {
    case SYS_accept: case SYS_accept4: connect_once(arguments); break;
    case SYS_wait4: case SYS_waitid: spawn(SIGCHLD, 0, NULL, NULL); break;
    case SYS_rt_sigtimedwait: raw(SYS_tgkill, own_pid(), own_tid(), SIGUSR1); break;
    case SYS_mq_timedreceive: raw(SYS_mq_timedsend, arguments[0], "x", 1, 0, 0); break;
    case SYS_read: case SYS_readv: case SYS_recvmsg: case SYS_recvfrom: case SYS_recvmmsg:
        raw(SYS_write, program.fds[4], "data", 4);
        raw(SYS_write, program.fds[14], "data", 4);
        break;
    }
}
