/*
 * The vocabulary of a contract: a small guest program that prints the facts of one kernel behaviour.
 *
 * A contract prints facts, it does not judge: the same binary runs under Linux and under our kernel and the
 * outputs are compared byte for byte. So nothing printed may depend on chance: no addresses, pids, clock
 * readings or inode numbers, only what was derived from them. The exit status is 0 unless the set-up itself
 * failed (99), in which case the output says which step. README.md beside this file has the rules.
 *
 * Printing:  say, section, check, show, show_text, RESULT (value or errno), OUTCOME (ok or errno)
 * Set-up:    need, scratch (an empty current directory, removed at exit), put_file, catch_signal
 * Children:  in_child, spawn, reap, show_status, run_script
 * Time:      sleep_ms, elapsed_ms
 *
 * Every line goes out as one write(2), so output never waits in a buffer that fork would double, and lines
 * of several processes never mix.
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
/* An address in no mapping of any process (the first page is below vm.mmap_min_addr). */
#define BAD_POINTER bad_pointer()
/* Hidden from the optimizer, which would refuse to compile the mistake. */
static inline void *bad_pointer(void)
{
    void *pointer = (void *)8;
    __asm__("" : "+r"(pointer));
    return pointer;
}

/* The POSIX name of an errno value; the caller keeps no reference to a number that is not listed. */
static inline const char *errno_name(int error)
{
    static const struct { int value; const char *name; } names[] = {
#define NAME(e) { e, #e }
        NAME(EPERM), NAME(ENOENT), NAME(ESRCH), NAME(EINTR), NAME(EIO), NAME(ENXIO), NAME(E2BIG),
        NAME(ENOEXEC), NAME(EBADF), NAME(ECHILD), NAME(EAGAIN), NAME(ENOMEM), NAME(EACCES), NAME(EFAULT),
        NAME(EBUSY), NAME(EEXIST), NAME(EXDEV), NAME(ENODEV), NAME(ENOTDIR), NAME(EISDIR), NAME(EINVAL),
        NAME(ENFILE), NAME(EMFILE), NAME(ENOTTY), NAME(ETXTBSY), NAME(EFBIG), NAME(ENOSPC), NAME(ESPIPE),
        NAME(EROFS), NAME(EMLINK), NAME(EPIPE), NAME(EDOM), NAME(ERANGE), NAME(EDEADLK), NAME(ENAMETOOLONG),
        NAME(ENOLCK), NAME(ENOSYS), NAME(ENOTEMPTY), NAME(ELOOP), NAME(ENOTBLK), NAME(ENODATA), NAME(ETIME),
        NAME(EOVERFLOW), NAME(EUSERS), NAME(ENOTSOCK), NAME(EDESTADDRREQ), NAME(EMSGSIZE), NAME(EPROTOTYPE),
        NAME(ENOPROTOOPT), NAME(EPROTONOSUPPORT), NAME(ESOCKTNOSUPPORT), NAME(EOPNOTSUPP),
        NAME(EAFNOSUPPORT), NAME(EADDRINUSE), NAME(EADDRNOTAVAIL), NAME(ENETUNREACH), NAME(ECONNABORTED),
        NAME(ECONNRESET), NAME(ENOBUFS), NAME(EISCONN), NAME(ENOTCONN), NAME(ESHUTDOWN), NAME(ETIMEDOUT),
        NAME(ECONNREFUSED), NAME(EHOSTUNREACH), NAME(EALREADY), NAME(EINPROGRESS), NAME(ECANCELED),
        NAME(EOWNERDEAD), NAME(ENOTRECOVERABLE), NAME(ELIBBAD), NAME(ENOMSG), NAME(EIDRM), NAME(EPROTO), NAME(EILSEQ),
#undef NAME
    };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].value == error)
            return names[i].name;
    return error ? "an errno without a name here" : "no error";
}

/* The name of a standard signal; real-time signals are all "SIGRT". */
static inline const char *signal_name(int number)
{
    static const char *const names[] = {
        "none", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL",
        "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT",
        "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF",
        "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
    };
    if (number >= 0 && (size_t)number < COUNT_OF(names))
        return names[number];
    return "SIGRT";
}

/* Prints one line; safe in signal handlers and in forked children. Lines are cut at 511 characters. */
__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    int saved = errno;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    for (int done = 0, wrote; done < length; done += wrote > 0 ? wrote : 0)
        if ((wrote = write(STDOUT_FILENO, line + done, length - done)) == -1 && errno != EINTR && errno != EAGAIN)
            _exit(99);
    errno = saved;
}

static inline void section(const char *title) { say("-- %s", title); }
static inline void show(const char *name, long long value) { say("%s = %lld", name, value); }
static inline void show_text(const char *name, const char *text) { say("%s = \"%s\"", name, text); }

/* Prints whether a fact holds; returns it, so that a contract may skip what depends on it. */
#define check(condition, text) check_fact(!!(condition), (text))
static inline int check_fact(int holds, const char *text)
{
    if (holds)
        say("ok %s", text);
    else
        say("FAIL %s (errno %s)", text, errno_name(errno));
    return holds;
}

/* Runs a call and prints its text with its value, or with the errno when the value is -1. */
#define RESULT(call) (errno = 0, show_result(#call, (long)(call)))
static inline long show_result(const char *text, long value)
{
    if (value == -1 && errno)
        say("%s = -1 %s", text, errno_name(errno));
    else
        say("%s = %ld", text, value);
    return value;
}

/* The same for calls whose good values are chance (descriptors, addresses, pids): prints only ok or the errno. */
#define OUTCOME(call) (errno = 0, show_outcome(#call, (long)(call)))
static inline long show_outcome(const char *text, long value)
{
    say("%s: %s", text, value == -1 ? errno_name(errno) : "ok");
    return value;
}

/* A step of the set-up that must work for the contract to say anything. */
#define need(condition) ((condition) ? (void)0 : set_up_failed(#condition))
__attribute__((noreturn)) static inline void set_up_failed(const char *step)
{
    say("SET-UP FAILED %s (errno %s)", step, errno_name(errno));
    exit(99);
}

static inline void sleep_ms(long milliseconds)
{
    struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

/* Milliseconds of the monotonic clock since its own start; only differences mean anything. */
static inline long long elapsed_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Starts body(argument) in a child; its return value is the exit status. */
static inline pid_t spawn(int (*body)(void *), void *argument)
{
    pid_t child = fork();
    need(child != -1);
    if (child == 0)
        _exit(body(argument));
    return child;
}

/* Waits for one child; returns its raw wait status. */
static inline int reap(pid_t child)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got == -1 && errno == EINTR);
    need(got == child);
    return status;
}

static inline int in_child(int (*body)(void *), void *argument) { return reap(spawn(body, argument)); }

static inline void show_status(const char *who, int status)
{
    if (WIFEXITED(status))
        say("%s exited with %d", who, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        say("%s was killed by %s", who, signal_name(WTERMSIG(status)));
    else if (WIFSTOPPED(status))
        say("%s was stopped by %s", who, signal_name(WSTOPSIG(status)));
    else
        say("%s %s", who, WIFCONTINUED(status) ? "was continued" : "has a status of no known kind");
}

/* Runs a script of /bin/sh and shows how it ended. */
static inline void run_script(const char *script)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(127);
    }
    show_status("script", reap(child));
}

static inline void catch_signal(int number, void (*handler)(int), int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    need(sigaction(number, &action, NULL) == 0);
}

static char scratch_path[32];
static pid_t scratch_owner;

static inline int scratch_remove(const char *path, const struct stat *meta, int kind, struct FTW *place)
{
    (void)meta, (void)kind, (void)place;
    return remove(path);
}

static inline void scratch_clean(void)
{
    if (getpid() == scratch_owner && chdir("/") == 0)
        nftw(scratch_path, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes an empty directory under /tmp the current one; it goes away, with all it holds, at exit. */
static inline void scratch(void)
{
    strcpy(scratch_path, "/tmp/contract-XXXXXX");
    need(mkdtemp(scratch_path) && chmod(scratch_path, 0755) == 0 && chdir(scratch_path) == 0);
    umask(022);
    scratch_owner = getpid();
    need(atexit(scratch_clean) == 0);
}

/* Creates or replaces a file with this text. */
static inline void put_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    need(fd != -1 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0);
    close(fd);
}

/* Reads a whole small file into a buffer as text; returns its length or -1. */
static inline ssize_t get_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t length = 0, got = -1;
    while (fd != -1 && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += got;
    if (fd != -1)
        close(fd);
    text[got == -1 ? 0 : length] = 0;
    return got == -1 ? -1 : length;
}

/* Fresh private anonymous memory of so many pages. */
static inline char *fresh_pages(size_t count)
{
    char *memory = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED);
    return memory;
}

/* Memory that a fork shares, zeroed: where children leave what they saw. */
static inline void *shared_page(void)
{
    void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED);
    return memory;
}

#endif
