/* Processes: fork, exec, wait, and short shell commands. */
#include "bench.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const fruit[] = {"apple", "banana", "cherry", "damson", "elder", "fig", "grape"};
enum { FRUITS = sizeof fruit / sizeof *fruit };

static void run_fork_exit(unsigned long iterations, Span *span) {
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        need(child, "fork");
        need(waitpid(child, 0, 0), "waitpid");
    }
    span_close(span);
}

static void run_waitid(unsigned long iterations, Span *span) {
    siginfo_t info;
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) waitid(P_ALL, 0, &info, WEXITED | WNOHANG);
    span_close(span);
}

static void run_exec_true(unsigned long iterations, Span *span) {
    char *const arguments[] = {"/bin/true", 0};
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) bench_spawn(arguments);
    span_close(span);
}

/* A program with 5 MiB of code of which so many pages are executed: what its image costs, and what it saves. */
static void exec_large(const char *pages, unsigned long iterations, Span *span) {
    char *const arguments[] = {"/sbin/large", (char *)pages, 0};
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) bench_spawn(arguments);
    span_close(span);
}

static void run_exec_large_64(unsigned long iterations, Span *span) { exec_large("64", iterations, span); }
static void run_exec_large_512(unsigned long iterations, Span *span) { exec_large("512", iterations, span); }

/* The same shell command again and again. */
static void shell_loop(const char *command, unsigned long iterations, Span *span) {
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) bench_shell(command);
    span_close(span);
}

static void run_shell_noop(unsigned long iterations, Span *span) { shell_loop("true", iterations, span); }

static void run_pipe_grep(unsigned long iterations, Span *span) {
    bench_text("/tmp/grep.txt", 300, fruit, FRUITS);
    shell_loop("grep apple /tmp/grep.txt >/dev/null", iterations, span);
    unlink("/tmp/grep.txt");
}

static void run_sed_pipeline(unsigned long iterations, Span *span) {
    bench_text("/tmp/sed.txt", 200, fruit, FRUITS);
    shell_loop("sed -e 's/apple/orange/g' -e 's/line/row/' /tmp/sed.txt >/dev/null", iterations, span);
    unlink("/tmp/sed.txt");
}

static void run_sort_uniq(unsigned long iterations, Span *span) {
    FILE *file = fopen("/tmp/sort.txt", "w");
    if (!file) bench_fail("/tmp/sort.txt");
    for (unsigned i = 0; i < 500; i++) fprintf(file, "%s\n", fruit[i * 31 % FRUITS]);
    fclose(file);
    shell_loop("sort /tmp/sort.txt | uniq -c | sort -rn >/dev/null", iterations, span);
    unlink("/tmp/sort.txt");
}

static void run_tar_extract(unsigned long iterations, Span *span) {
    bench_shell("mkdir /tmp/tar && cd /tmp/tar && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "
                "echo content of file $i >file$i; done && tar cf /tmp/small.tar . && rm -rf /tmp/tar");
    shell_loop("rm -rf /tmp/out; mkdir /tmp/out; tar xf /tmp/small.tar -C /tmp/out", iterations, span);
    bench_shell("rm -rf /tmp/out /tmp/small.tar");
}

const Bench bench_processes[] = {
    {"fork_exit", 500, run_fork_exit},
    {"waitid", 500000, run_waitid},
    {"exec_true", 200, run_exec_true},
    {"exec_large_64", 50, run_exec_large_64},
    {"exec_large_512", 50, run_exec_large_512},
    {"shell_noop", 100, run_shell_noop},
    {"pipe_grep", 100, run_pipe_grep},
    {"sed_pipeline", 100, run_sed_pipeline},
    {"sort_uniq", 50, run_sort_uniq},
    {"tar_extract", 50, run_tar_extract},
    {0, 0, 0},
};
