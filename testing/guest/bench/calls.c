/* System calls that do next to nothing: the price of entry and exit, and of the descriptor table. */
#include "bench.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

/* A benchmark that is one expression, with nothing to prepare. */
#define LOOP(name, expression)                                                                                         \
    static void name(unsigned long iterations, Span *span) {                                                           \
        span_open(span);                                                                                               \
        for (unsigned long i = 0; i < iterations; i++) expression;                                                     \
        span_close(span);                                                                                              \
    }

/* The same on a descriptor of a device. */
#define ON_DEVICE(name, device, flags, expression)                                                                     \
    static void name(unsigned long iterations, Span *span) {                                                           \
        static char buffer[4096];                                                                                      \
        int fd = (int)need(open(device, flags), device);                                                               \
        struct iovec one = {buffer, 1};                                                                                \
        struct stat status;                                                                                            \
        (void)one, (void)status;                                                                                       \
        span_open(span);                                                                                               \
        for (unsigned long i = 0; i < iterations; i++) expression;                                                     \
        span_close(span);                                                                                              \
        close(fd);                                                                                                     \
    }

static struct utsname names;

LOOP(run_getpid, getpid())
/* musl answers gettid from memory; the call itself is what is measured. */
LOOP(run_gettid, syscall(SYS_gettid))
LOOP(run_getuid, getuid())
LOOP(run_uname, uname(&names))
LOOP(run_getpriority, getpriority(PRIO_PROCESS, 0))
LOOP(run_sched_yield, sched_yield())

static void run_clock_gettime(unsigned long iterations, Span *span) {
    struct timespec now;
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) clock_gettime(CLOCK_MONOTONIC, &now);
    span_close(span);
}

ON_DEVICE(run_read_null, "/dev/null", O_RDONLY, (void)!read(fd, buffer, 1))
ON_DEVICE(run_write_null, "/dev/null", O_WRONLY, (void)!write(fd, buffer, 1))
ON_DEVICE(run_pread, "/dev/null", O_RDONLY, (void)!pread(fd, buffer, 1, 0))
ON_DEVICE(run_writev, "/dev/null", O_WRONLY, (void)!writev(fd, &one, 1))
ON_DEVICE(run_read_zero, "/dev/zero", O_RDONLY, (void)!read(fd, buffer, sizeof buffer))
ON_DEVICE(run_fstat, "/dev/null", O_RDONLY, fstat(fd, &status))
ON_DEVICE(run_lseek, "/dev/null", O_RDONLY, lseek(fd, 0, SEEK_CUR))
ON_DEVICE(run_fcntl_getfl, "/dev/null", O_RDONLY, fcntl(fd, F_GETFL))
ON_DEVICE(run_dup_close, "/dev/null", O_RDONLY, close(dup(fd)))

static void run_sigaction(unsigned long iterations, Span *span) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) sigaction(SIGUSR1, &ignore, 0);
    span_close(span);
    signal(SIGUSR1, SIG_DFL);
}

static void run_sigprocmask(unsigned long iterations, Span *span) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        sigprocmask(SIG_BLOCK, &set, 0);
        sigprocmask(SIG_UNBLOCK, &set, 0);
    }
    span_close(span);
}

static volatile unsigned long delivered;

static void on_signal(int number) {
    (void)number;
    delivered++;
}

static void run_signal_delivery(unsigned long iterations, Span *span) {
    struct sigaction handler = {.sa_handler = on_signal};
    delivered = 0;
    need(sigaction(SIGUSR1, &handler, 0), "sigaction");
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) raise(SIGUSR1);
    span_close(span);
    signal(SIGUSR1, SIG_DFL);
    if (delivered != iterations) bench_fail("signals were lost");
}

const Bench bench_calls[] = {
    {"getpid", 1000000, run_getpid},
    {"gettid", 1000000, run_gettid},
    {"getuid", 1000000, run_getuid},
    {"clock_gettime", 1000000, run_clock_gettime},
    {"uname", 500000, run_uname},
    {"getpriority", 500000, run_getpriority},
    {"sched_yield", 500000, run_sched_yield},
    {"read_null", 500000, run_read_null},
    {"write_null", 500000, run_write_null},
    {"pread", 500000, run_pread},
    {"writev", 500000, run_writev},
    {"read_zero", 200000, run_read_zero},
    {"fstat", 500000, run_fstat},
    {"lseek", 1000000, run_lseek},
    {"fcntl_getfl", 1000000, run_fcntl_getfl},
    {"dup_close", 500000, run_dup_close},
    {"sigaction", 500000, run_sigaction},
    {"sigprocmask", 500000, run_sigprocmask},
    {"signal_delivery", 200000, run_signal_delivery},
    {0, 0, 0},
};
