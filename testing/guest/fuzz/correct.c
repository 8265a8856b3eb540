/*
 * Corrects what the kinds of arguments alone choose badly: what one argument means depends on another, and some calls
 * succeed only if several are right at once.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

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
    arguments[3] |= (fixed ? MAP_FIXED : 0) | (chance(step, 60) ? MAP_ANONYMOUS : 0) | (chance(step, 15)
        ? MAP_POPULATE : 0);
    if (chance(step, 15))
        arguments[3] ^= choose_flags(step, step->call->arguments[3].flags, false);
    arguments[4] = arguments[3] & MAP_ANONYMOUS && chance(step, 80) ? -1 : choose_fd(step);
    arguments[5] = chance(step, 85) ? (long)(PAGE * below(step, 4)) : choose_offset(step);
    say(step, " = %#lx, %#lx, %ld, %#lx, %ld, %#lx", arguments[0], arguments[1], arguments[2], arguments[3],
        arguments[4],
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
    default: return choose_word(step);
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

void correct(struct step *step, long *arguments)
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
    case SYS_mq_timedsend: case SYS_mq_timedreceive: case SYS_mq_notify: case SYS_mq_getsetattr:
        if (chance(step, 70))
            arguments[0] = program.fds[24];
        if (chance(step, 70) && step->call->number != SYS_mq_notify) {
            arguments[2] = step->call->number == SYS_mq_timedsend ? below(step, 65) : 64;
            arguments[3] = arguments[4] = 0;
        }
        break;
    case SYS_pidfd_send_signal:
        if (chance(step, 70))
            arguments[0] = program.fds[30];
        if (chance(step, 60))
            arguments[2] = arguments[3] = 0;
        break;
    case SYS_copy_file_range: case SYS_sendfile: case SYS_fallocate: case SYS_ftruncate: case SYS_pread64:
        case SYS_pwrite64:
        if (chance(step, 60)) {
            arguments[0] = program.fds[chance(step, 60) ? 0 : 22];
            if (step->call->number == SYS_copy_file_range) {
                arguments[2] = program.fds[chance(step, 50) ? 22 : 37];
                arguments[5] = 0;
            } else if (step->call->number == SYS_sendfile) {
                arguments[1] = program.fds[chance(step, 50) ? 1 : 22];
            } else if (step->call->number == SYS_fallocate) {
                arguments[1] = below(step, 4);
            }
        }
        break;
    case SYS_epoll_ctl:
        if (chance(step, 60)) {
            arguments[0] = program.fds[chance(step, 50) ? 11 : 12];
            arguments[1] = 1 + below(step, 3);
        }
        break;
    case SYS_epoll_wait: case SYS_epoll_pwait: case SYS_epoll_pwait2:
        if (chance(step, 70)) {
            arguments[0] = program.fds[chance(step, 50) ? 11 : 12];
            arguments[2] = 1 + below(step, 16);
        }
        break;
    case SYS_getdents64: case SYS_fchdir:
        if (chance(step, 60))
            arguments[0] = program.fds[2];
        break;
    case SYS_renameat2: case SYS_openat2: case SYS_statx: case SYS_execveat: case SYS_preadv2: case SYS_pwritev2:
        /* A flag that is not there refuses the whole call. */
        for (int i = 0; chance(step, 40) && i < step->call->count; i++)
            if (step->call->arguments[i].kind == KIND_FLAGS)
                arguments[i] = 0;
        break;
    case SYS_getsockopt: case SYS_setsockopt:
        if (chance(step, 60)) {
            arguments[0] = program.fds[13 + below(step, 7)];
            arguments[1] = SOL_SOCKET;
        }
        if (chance(step, 40))
            arguments[2] = 1 + below(step, 40);
        break;
    case SYS_connect:
        if (chance(step, 40))
            arguments[0] = program.fds[chance(step, 50) ? 34 : 33];
        break;
    case SYS_personality:
        if (chance(step, 70))
            arguments[0] = -1;
        break;
    case SYS_getcwd: case SYS_uname: case SYS_getresuid: case SYS_getresgid: case SYS_pipe:
        /* Success needs every pointer to be good at once. */
        for (int i = 0; chance(step, 50) && i < step->call->count; i++)
            if (step->call->arguments[i].kind == KIND_PTR)
                arguments[i] = (long)program.areas[0].at + 256 * i;
        break;
    }
}
