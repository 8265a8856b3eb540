/*
 * The shape of a benchmark: a name, how many operations one run makes, and a function that makes them.
 *
 * A function sets up, then wraps the operations alone in a Span, then cleans up. The number of operations is part of
 * the figure: the host refuses to compare different ones.
 */
#ifndef BENCH_H
#define BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    uint64_t start, nanoseconds;
} Span;

static inline uint64_t bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Marks for the instruction profile (testing/plugin/profile.c): no-ops with a magic operand, "kwb" and a letter. A
 * span's marks lie outside its clock readings, so that they cost the figure nothing.
 */
#define BENCH_MARK(letter) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 'k', 'w', 'b', " letter ::: "memory")

/* Operations that warm up are in no figure and have no marks. */
extern int bench_warms_up;

static inline void span_open(Span *span) {
    if (!bench_warms_up) BENCH_MARK("'o'");
    span->start = bench_now();
}

static inline void span_close(Span *span) {
    span->nanoseconds += bench_now() - span->start;
    if (!bench_warms_up) BENCH_MARK("'c'");
}

typedef struct {
    const char *name;
    unsigned long iterations;
    void (*run)(unsigned long iterations, Span *span);
} Bench;

/* One table per file, each ended by an entry without a name. */
extern const Bench bench_calls[], bench_memory[], bench_files[], bench_events[], bench_processes[], bench_busybox[];

/* Ends the whole run with a message: a benchmark whose operation fails has no figure. */
__attribute__((noreturn)) void bench_fail(const char *what);

/* The value, unless it is -1. */
static inline long need(long value, const char *what) {
    if (value == -1) bench_fail(what);
    return value;
}

/* Writes a file of the given lines, numbered, for the programs that read text. */
void bench_text(const char *path, unsigned lines, const char *const *words, unsigned count);

/* Forks, executes, waits; a status other than zero ends the run. */
void bench_spawn(char *const arguments[]);
void bench_shell(const char *command);

#endif
