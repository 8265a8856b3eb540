/*
 * All arguments of a call: by their kinds, and by what one of them means for another.
 */
#include "fuzz.h"

#include <signal.h>
#include <string.h>
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

long choose_word(struct step *step)
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
        static const long modes[] = { 0644, 0600, 0777, 0, 04755, 02755, 01777, 010644, 020644, 060644, 0140644,
            0177777, -1 };
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
    case KIND_HEX: return choose_word(step);
    default: return choose_number(step);
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
