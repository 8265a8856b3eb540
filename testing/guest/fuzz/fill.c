/*
 * Fills structures of the usual size with values that often make sense.
 */
#include "shapes.h"

#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <time.h>

static void *memory(struct step *step, size_t length, size_t *size)
{
    *size = length;
    return memset(scratch(step, length), 0, length);
}

/* Seconds and nanoseconds, `scale` of which make one of the second word. */
static void *times(struct step *step, int count, long scale, size_t *size)
{
    long *word = memory(step, 16 * (size_t)count, size);
    say(step, "{");
    for (int i = 0; i < count; i++) {
        long nanoseconds;
        word[2 * i] = choose_seconds(step, &nanoseconds);
        word[2 * i + 1] = nanoseconds / scale;
        say(step, "%s%ld.%09ld", i ? ", " : "", word[2 * i], word[2 * i + 1]);
    }
    say(step, "}");
    return word;
}

static void *two_timespec(struct step *step, size_t *size)
{
    struct timespec *time = times(step, 2, 1, size);
    static const long special[] = { UTIME_NOW, UTIME_OMIT };
    for (int i = 0; i < 2; i++)
        if (chance(step, 40))
            time[i].tv_nsec = special[below(step, 2)];
    return time;
}

static void *signals(struct step *step, size_t *size)
{
    uint64_t *set = memory(step, 8, size);
    switch (below(step, 4)) {
    case 0: *set = 1ULL << below(step, 64); break;
    case 1: *set = any(step) & any(step); break;
    case 2: *set = below(step, 8) ? 0 : ~0ULL; break;
    default: *set = 1ULL << (SIGUSR1 - 1) | 1ULL << (SIGUSR2 - 1) | 1ULL << 33; break;
    }
    say(step, "{%#lx}", (unsigned long)*set);
    return set;
}

static void handler(int signal)
{
    (void)signal;
    if (program.board) /* rt_sigreturn works if what follows does. */
        count(call_index(15), 0);
}

__attribute__((naked)) static void restorer(void)
{
    __asm__("mov $15, %eax\n syscall");
}

/* The kernel's structure, not the library's. */
static void *action(struct step *step, size_t *size)
{
    uint64_t *words = memory(step, 32, size);
    static const uint64_t flags[] = { SA_RESTART, SA_SIGINFO, SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_NOCLDSTOP,
        SA_NOCLDWAIT };
    switch (below(step, 8)) {
    case 0: words[0] = 0; break;
    case 1: words[0] = 1; break;
    case 2: words[0] = chance(step, 5) ? choose_address(step, 8) : 1; break;
    default: words[0] = (uint64_t)handler; break;
    }
    words[1] = chance(step, 97) ? 0x04000000 : 0;
    words[1] |= flags[below(step, 7)] | (chance(step, 30) ? flags[below(step, 7)] : 0);
    words[2] = chance(step, 97) ? (uint64_t)restorer : any(step);
    words[3] = chance(step, 70) ? 0 : any(step) & ~(1ULL << 13);
    say(step, "{handler %s, flags %#lx}", words[0] < 2 ? "none" : "some", (unsigned long)words[1]);
    return words;
}

static void *selection(struct step *step, size_t *size)
{
    uint8_t *set = memory(step, sizeof(fd_set), size);
    for (int left = below(step, 5); left > 0; left--) {
        int fd = program.fds[below(step, DESCRIPTORS)];
        if (fd >= 0 && fd < 1024)
            set[fd / 8] |= 1 << fd % 8;
    }
    return set;
}

static void *polls(struct step *step, size_t *size)
{
    struct pollfd *poll = memory(step, 8 * sizeof *poll, size);
    static const short events[] = { POLLIN, POLLOUT, POLLPRI, POLLRDHUP, POLLIN | POLLOUT, 0, -1 };
    for (int i = 0; i < 8; i++) {
        poll[i].fd = program.fds[below(step, DESCRIPTORS)];
        poll[i].events = events[below(step, 7)];
    }
    return poll;
}

static void *epoll(struct step *step, size_t *size)
{
    static const uint32_t bits[] = { EPOLLIN, EPOLLOUT, EPOLLET, EPOLLONESHOT, EPOLLEXCLUSIVE, EPOLLRDHUP,
        EPOLLWAKEUP, EPOLLPRI };
    struct epoll_event *event = memory(step, sizeof *event, size);
    event->events = EPOLLIN | bits[below(step, 8)] | (chance(step, 40) ? bits[below(step, 8)] : 0);
    event->data.u64 = any(step);
    say(step, "{%#x}", event->events);
    return event;
}

static void *event(struct step *step, size_t *size)
{
    static const int how[] = { SIGEV_SIGNAL, SIGEV_NONE, 4 /* SIGEV_THREAD_ID */, SIGEV_THREAD, 77 };
    int32_t *words = memory(step, 64, size);
    words[2] = (int32_t)choose_signal(step);
    words[3] = how[chance(step, 60) ? 0 : below(step, 5)];
    words[4] = program.thread[below(step, THREADS)].tid;
    say(step, "{sigevent %d}", words[3]);
    return words;
}

static void *info(struct step *step, size_t *size)
{
    static const int codes[] = { -1, -2, -6, 0, 1, 0x80, -60 };
    int32_t *words = memory(step, 128, size);
    words[0] = (int32_t)choose_signal(step);
    words[2] = codes[below(step, 7)];
    words[3] = program.pids[1];
    return words;
}

static void *limit(struct step *step, size_t *size)
{
    static const uint64_t limits[] = { 0, 1, 64, 4096, 1 << 20, 1 << 26, ~0ULL, 8 << 20 };
    uint64_t *words = memory(step, 16, size);
    words[0] = limits[below(step, 8)];
    words[1] = chance(step, 60) ? words[0] : limits[below(step, 8)];
    say(step, "{%#lx, %#lx}", (unsigned long)words[0], (unsigned long)words[1]);
    return words;
}

static void *stack(struct step *step, size_t *size)
{
    stack_t *stack = memory(step, sizeof *stack, size);
    stack->ss_sp = (void *)choose_address(step, 8);
    stack->ss_size = (size_t)choose_size(step) + (chance(step, 70) ? 8192 : 0);
    stack->ss_flags = chance(step, 60) ? 0 : (int)choose_number(step);
    return stack;
}

static void *robust(struct step *step, size_t *size)
{
    unsigned long *head = memory(step, 24, size);
    head[0] = chance(step, 30) ? (unsigned long)head : choose_address(step, 8);
    head[1] = chance(step, 60) ? 8 : any(step);
    head[2] = chance(step, 60) ? 0 : choose_address(step, 8);
    /* A list of two, the second of which leads back. */
    if (chance(step, 40)) {
        unsigned long *entry = memory(step, 16, size);
        head[0] = (unsigned long)entry;
        entry[0] = chance(step, 80) ? (unsigned long)head : (unsigned long)entry;
        entry[1] = (unsigned long)program.thread[below(step, THREADS)].tid;
        head[1] = 8;
    }
    *size = 24;
    return head;
}

static void *small(struct step *step, enum shape shape, size_t *size)
{
    uint64_t *words = memory(step, shape == SHAPE_ZEROS ? 256 : 64, size);
    switch (shape) {
    case SHAPE_LENGTH: *(uint32_t *)words = chance(step, 80) ? 4 + below(step, 124) : (uint32_t)any(step); break;
    case SHAPE_CAP_HEAD: *(uint32_t *)words = chance(step, 80) ? 0x20080522 : (uint32_t)any(step); break;
    case SHAPE_CAP_DATA: words[0] = chance(step, 50) ? 0 : any(step); break;
    case SHAPE_SCHED: *(uint32_t *)words = chance(step, 70) ? 0 : (uint32_t)choose_number(step); break;
    case SHAPE_OFFSET: words[0] = (uint64_t)choose_offset(step); break;
    case SHAPE_CPUS: words[0] = chance(step, 80) ? 1 + below(step, 3) : any(step); break;
    case SHAPE_QUEUE: words[1] = 1 + below(step, 12); words[2] = 8 << below(step, 8); break;
    case SHAPE_HOW:
        words[0] = chance(step, 60) ? O_RDONLY : any(step) & 0x3fffff;
        words[1] = words[0] & O_CREAT ? 0644 : 0;
        words[2] = chance(step, 50) ? 0 : below(step, 64);
        break;
    case SHAPE_SIGNALS_ARG: words[0] = (uint64_t)(words + 4); words[1] = chance(step, 90) ? 8 : any(step); break;
    case SHAPE_RSEQ: words = (uint64_t *)(((unsigned long)words + 31) & ~31UL); break;
    case SHAPE_BYTES: words[0] = chance(step, 60) ? 1 + below(step, 3) : any(step); break;
    default: break;
    }
    return words;
}

void *fill(struct step *step, enum shape shape, size_t *size)
{
    switch (shape) {
    case SHAPE_VECTOR: return fill_vector(step, size);
    case SHAPE_MESSAGE: return fill_message(step, size);
    case SHAPE_MESSAGES: return fill_messages(step, size);
    case SHAPE_ADDRESS: return fill_address(step, size);
    case SHAPE_WORDS: return fill_words(step, size);
    case SHAPE_CLONE: return fill_clone(step, size);
    case SHAPE_ACTION: return action(step, size);
    case SHAPE_SIGNALS: return signals(step, size);
    case SHAPE_TIMESPEC: return times(step, 1, 1, size);
    case SHAPE_TIMEVAL: return times(step, 1, 1000, size);
    case SHAPE_TWO_TIMESPEC: return two_timespec(step, size);
    case SHAPE_TWO_TIMEVAL: return times(step, 2, 1000, size);
    case SHAPE_ITIMERSPEC: return times(step, 2, 1, size);
    case SHAPE_ITIMERVAL: return times(step, 2, 1000, size);
    case SHAPE_EPOLL: return epoll(step, size);
    case SHAPE_POLL: return polls(step, size);
    case SHAPE_SELECT: return selection(step, size);
    case SHAPE_EVENT: return event(step, size);
    case SHAPE_INFO: return info(step, size);
    case SHAPE_STACK: return stack(step, size);
    case SHAPE_LIMIT: return limit(step, size);
    case SHAPE_ROBUST: return robust(step, size);
    case SHAPE_STACK_TOP: *size = 0; return (void *)(program.areas[0].at + program.areas[0].length);
    default: return small(step, shape, size);
    }
}
