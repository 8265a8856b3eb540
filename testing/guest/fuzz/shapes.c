/*
 * Finds the kind of structure behind an argument by its name, and puts it where it belongs or where it does not.
 */
#include "shapes.h"

#include <string.h>

/* The first row that fits; a call's name may be only its beginning. Without a row it is memory for a result. */
static const struct { const char *call, *argument; enum shape shape; } rows[] = {
    { "select", "timeout", SHAPE_TIMEVAL }, { "pselect6", "sigmask", SHAPE_SIGNALS_ARG }, { "utimensat", "times",
    SHAPE_TWO_TIMESPEC },
    { "", "times", SHAPE_TWO_TIMEVAL }, { "setitimer", "new_value", SHAPE_ITIMERVAL }, { "", "new_value",
    SHAPE_ITIMERSPEC },
    { "epoll_ctl", "event", SHAPE_EPOLL }, { "poll", "fds", SHAPE_POLL }, { "ppoll", "fds", SHAPE_POLL },
    { "sendto", "buf", SHAPE_BYTES }, { "write", "buf", SHAPE_BYTES }, { "pwrite64", "buf", SHAPE_BYTES },
    { "", "dest_addr", SHAPE_ADDRESS }, { "bind", "addr", SHAPE_ADDRESS }, { "connect", "addr", SHAPE_ADDRESS },
    { "", "addrlen", SHAPE_LENGTH }, { "getsockopt", "optlen", SHAPE_LENGTH }, { "setsockopt", "optval", SHAPE_BYTES },
    { "mmap", "addr", SHAPE_RANGE }, { "mprotect", "addr", SHAPE_RANGE }, { "munmap", "addr", SHAPE_RANGE },
    { "mremap", "", SHAPE_RANGE }, { "msync", "addr", SHAPE_RANGE }, { "mincore", "addr", SHAPE_RANGE },
    { "madvise", "addr", SHAPE_RANGE }, { "ml", "addr", SHAPE_RANGE }, { "mun", "addr", SHAPE_RANGE },
    { "rt_sigaction", "act", SHAPE_ACTION }, { "rt_sigprocmask", "set", SHAPE_SIGNALS }, { "rt_sigtimedwait", "set",
    SHAPE_SIGNALS },
    { "signalfd", "mask", SHAPE_SIGNALS }, { "rt_sigsuspend", "mask", SHAPE_SIGNALS }, { "", "sigmask", SHAPE_SIGNALS },
    { "sched_setaffinity", "mask", SHAPE_CPUS }, { "", "req", SHAPE_TIMESPEC }, { "", "request", SHAPE_TIMESPEC },
    { "", "timeout", SHAPE_TIMESPEC }, { "", "abs_timeout", SHAPE_TIMESPEC }, { "", "tmo_p", SHAPE_TIMESPEC },
    { "clock_settime", "tp", SHAPE_TIMESPEC }, { "settimeofday", "tv", SHAPE_TIMEVAL }, { "", "iov", SHAPE_VECTOR },
    { "", "iovec", SHAPE_VECTOR }, { "", "local_iov", SHAPE_VECTOR }, { "", "remote_iov", SHAPE_VECTOR },
    { "", "msg", SHAPE_MESSAGE }, { "", "msgvec", SHAPE_MESSAGES }, { "", "readfds", SHAPE_SELECT },
    { "", "writefds", SHAPE_SELECT }, { "", "exceptfds", SHAPE_SELECT }, { "", "sevp", SHAPE_EVENT },
    { "rt_", "info", SHAPE_INFO }, { "pidfd", "info", SHAPE_INFO }, { "", "ss", SHAPE_STACK }, { "setrlimit", "rlim",
    SHAPE_LIMIT },
    { "", "new_limit", SHAPE_LIMIT }, { "", "hdrp", SHAPE_CAP_HEAD }, { "capset", "datap", SHAPE_CAP_DATA },
    { "sched_set", "param", SHAPE_SCHED }, { "", "uaddr", SHAPE_FUTEX }, { "", "uaddr2", SHAPE_FUTEX },
    { "set_robust_list", "head", SHAPE_ROBUST }, { "", "newattr", SHAPE_QUEUE }, { "", "attr", SHAPE_QUEUE },
    { "mq_timedsend", "msg_ptr", SHAPE_BYTES }, { "", "cl_args", SHAPE_CLONE }, { "", "how", SHAPE_HOW },
    { "", "argv", SHAPE_WORDS }, { "", "envp", SHAPE_WORDS }, { "", "off_in", SHAPE_OFFSET }, { "", "off_out",
    SHAPE_OFFSET },
    { "sendfile", "offset", SHAPE_OFFSET }, { "", "value", SHAPE_BYTES }, { "rseq", "rseq", SHAPE_RSEQ },
    { "adjtimex", "buf", SHAPE_ZEROS }, { "clock_adjtime", "buf", SHAPE_ZEROS }, { "clone", "stack", SHAPE_STACK_TOP },
    { "brk", "addr", SHAPE_RANGE }, { "mount", "data", SHAPE_BYTES },
};

static enum shape shape_of(const struct call *call, const char *argument)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(call->name, rows[i].call, strlen(rows[i].call)) == 0
            && (!rows[i].argument[0] || strcmp(argument, rows[i].argument) == 0))
            return rows[i].shape;
    return SHAPE_OUT;
}

/* Writes bytes where they may not be written without dying of it: the kernel is asked to. */
static void carry(unsigned long to, const void *from, size_t size)
{
    struct { const void *at; size_t length; } here = { from, size }, there = { (const void *)to, size };
    raw(311 /* process_vm_writev */, own_pid(), &here, 1, &there, 1, 0);
}

unsigned long choose_structure(struct step *step, const char *argument)
{
    enum shape shape = shape_of(step->call, argument);
    if (shape == SHAPE_FUTEX)
        return choose_address(step, 4) & (chance(step, 95) ? ~3UL : ~0UL);
    if (shape == SHAPE_RANGE)
        return choose_range(step, &step->length);
    if (shape == SHAPE_OUT || chance(step, 6))
        return choose_address(step, 64);
    size_t size = 0;
    say(step, "&");
    void *filled = fill(step, shape, &size);
    if (shape == SHAPE_ADDRESS)
        step->length = size;
    if (!filled || !chance(step, 15))
        return (unsigned long)filled;
    say(step, " at ");
    unsigned long to = choose_address(step, size);
    if (!step->text)
        carry(to, filled, size);
    return to;
}
