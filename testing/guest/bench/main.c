/*
 * The init of a benchmark run: goes through the tables in order and prints one line per benchmark,
 * "BENCH <name> <iterations> <total_ns> <ns_per_iteration>".
 *
 * /etc/kwab/bench may hold the names to run, one per line; without it everything runs.
 *
 * Each benchmark is run by a program of its own, "bench NAME", so that no figure depends on what ran before: a fork
 * copies the pages that the program has touched. What is made of other programs is run once before it counts, since a
 * kernel looks up the pages of a program file once, and that belongs to no operation.
 */
#include "bench.h"
#include "pid1.h"

void bench_fail(const char *what) {
    printf("BENCH-FAILED %s: %s\n", what, strerror(errno));
    fflush(stdout);
    pid1_finish(1);
}

void bench_spawn(char *const arguments[]) {
    pid_t child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    int status = 0;
    need(child, "fork");
    need(waitpid(child, &status, 0), "waitpid");
    if (status != 0) bench_fail(arguments[0]);
}

void bench_shell(const char *command) {
    char *const arguments[] = {"/bin/sh", "-c", (char *)command, 0};
    bench_spawn(arguments);
}

void bench_text(const char *path, unsigned lines, const char *const *words, unsigned count) {
    FILE *file = fopen(path, "w");
    if (!file) bench_fail(path);
    for (unsigned line = 0; line < lines; line++) {
        fprintf(file, "%u %s %s and the rest of line %u\n", line * 7919 % 1000, words[line % count],
                words[(line * 31 + 7) % count], line);
    }
    if (fclose(file) != 0) bench_fail(path);
}

static int wanted(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += length) {
        if ((at == list || at[-1] == '\n') && (at[length] == '\n' || at[length] == 0)) return 1;
    }
    return list == 0;
}

int bench_warms_up;

static const struct {
    const Bench *rows;
    int warms_up;
} tables[] = {
    {bench_calls, 0}, {bench_memory, 0}, {bench_files, 0}, {bench_events, 0}, {bench_processes, 1}, {bench_busybox, 1},
};

enum { TABLES = sizeof tables / sizeof *tables };

static void run(const Bench *bench, int warms_up) {
    Span span = {0, 0};
    bench_warms_up = warms_up;
    if (warms_up) bench->run(1, &span);
    bench_warms_up = 0;
    span.nanoseconds = 0;
    bench->run(bench->iterations, &span);
    BENCH_MARK("'e'");
    printf("BENCH %s %lu %llu %llu\n", bench->name, bench->iterations, (unsigned long long)span.nanoseconds,
           (unsigned long long)(span.nanoseconds / bench->iterations));
    fflush(stdout);
}

static int run_named(const char *name) {
    for (unsigned table = 0; table < TABLES; table++) {
        for (const Bench *bench = tables[table].rows; bench->name; bench++) {
            if (strcmp(bench->name, name) != 0) continue;
            run(bench, tables[table].warms_up);
            return 0;
        }
    }
    return 1;
}

static void run_apart(const Bench *bench) {
    char *const arguments[] = {"/sbin/bench", (char *)bench->name, 0};
    bench_spawn(arguments);
}

/*
 * The list, or 0 when there is none. It stays out of the heap: each further memory area makes mmap and munmap dearer on
 * a kernel that keeps areas in a tree, and the program should be as small as a program can be.
 */
static const char *read_list(void) {
    static char list[8192];
    int fd = open("/etc/kwab/bench", O_RDONLY | O_CLOEXEC);
    if (fd == -1) return 0;
    need(read(fd, list, sizeof list - 1), "/etc/kwab/bench");
    close(fd);
    return list;
}

/*
 * A kernel that was told to watch itself (debug=profile,trace) reports when it is told to stop. Linux has no such file.
 */
static void end_profile(void) {
    int fd = open("/proc/sys/kernel/debug", O_WRONLY | O_CLOEXEC);
    if (fd == -1) return;
    if (write(fd, "none\n", 5) != 5) printf("the kernel keeps its profile: %s\n", strerror(errno));
    fflush(stdout);
    close(fd);
}

int main(int count, char **arguments) {
    if (count > 1 && getpid() != 1) return run_named(arguments[1]);
    pid1_prepare();
    const char *list = read_list();
    need(chdir("/tmp"), "chdir /tmp");
    for (unsigned table = 0; table < TABLES; table++) {
        for (const Bench *bench = tables[table].rows; bench->name; bench++) {
            if (wanted(list, bench->name)) run_apart(bench);
        }
    }
    end_profile();
    pid1_finish(0);
}
