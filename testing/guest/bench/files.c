/* Paths and folders on the tmpfs at /tmp. */
#include "bench.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void make_file(const char *path, const char *text) {
    int fd = (int)need(open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644), path);
    need(write(fd, text, strlen(text)), path);
    close(fd);
}

static void run_open_close(unsigned long iterations, Span *span) {
    make_file("/tmp/bench_file", "x");
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) close(open("/tmp/bench_file", O_RDONLY));
    span_close(span);
    unlink("/tmp/bench_file");
}

static void run_stat(unsigned long iterations, Span *span) {
    struct stat status;
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) stat("/tmp", &status);
    span_close(span);
}

static void run_access(unsigned long iterations, Span *span) {
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) access("/tmp", F_OK);
    span_close(span);
}

static void run_readlink(unsigned long iterations, Span *span) {
    char target[256];
    need(symlink("/tmp/target", "/tmp/bench_link"), "symlink");
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) (void)!readlink("/tmp/bench_link", target, sizeof target);
    span_close(span);
    unlink("/tmp/bench_link");
}

static void run_getcwd(unsigned long iterations, Span *span) {
    char path[256];
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) (void)!getcwd(path, sizeof path);
    span_close(span);
}

static void run_getdents64(unsigned long iterations, Span *span) {
    static char entries[4096];
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        int fd = open("/tmp", O_RDONLY | O_DIRECTORY);
        syscall(SYS_getdents64, fd, entries, sizeof entries);
        close(fd);
    }
    span_close(span);
}

static void file_tree_once(void) {
    static char entries[4096], path[64];
    need(mkdir("/tmp/tree", 0755), "mkdir");
    need(mkdir("/tmp/tree/sub", 0755), "mkdir");
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "/tmp/tree/sub/file%d", i);
        make_file(path, "some bytes of content\n");
    }
    int fd = (int)need(open("/tmp/tree/sub", O_RDONLY | O_DIRECTORY), "open");
    while (need(syscall(SYS_getdents64, fd, entries, sizeof entries), "getdents64") > 0) continue;
    close(fd);
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "/tmp/tree/sub/file%d", i);
        need(unlink(path), "unlink");
    }
    need(rmdir("/tmp/tree/sub"), "rmdir");
    need(rmdir("/tmp/tree"), "rmdir");
}

static void run_file_tree(unsigned long iterations, Span *span) {
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) file_tree_once();
    span_close(span);
}

const Bench bench_files[] = {
    {"open_close", 100000, run_open_close},
    {"stat", 200000, run_stat},
    {"access", 200000, run_access},
    {"readlink", 200000, run_readlink},
    {"getcwd", 500000, run_getcwd},
    {"getdents64", 100000, run_getdents64},
    {"file_tree", 50, run_file_tree},
    {0, 0, 0},
};
