/*
 * The vocabulary of the stress program: what its driver and its workers share.
 *
 * `stress SECONDS SEED [COPIES]` starts COPIES of every kind of worker as processes and lets them run for the time.
 * A worker repeats rounds; each round does something a kernel can get wrong and checks what must hold afterwards
 * (a model of the pages, the files, the bytes sent). The first broken invariant stops everything: the run prints
 * which worker, which seed and which round, so that it can be repeated, and exits with 1.
 *
 * Build: musl-gcc -static -O2 -Wall -Wextra -Werror -std=gnu11 -o stress *.c
 */
#ifndef STRESS_H
#define STRESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL

/* One worker, in memory shared with the driver. */
struct worker {
    const char *kind;
    uint64_t random;          /* State of its generator; never zero. */
    volatile long rounds;     /* Finished; the driver sees from it that the worker is alive. */
    volatile long operations; /* What the summary counts. */
    volatile int *stop;       /* Set by the driver at the end and by a worker that finds something broken. */
    volatile int *broken;     /* Number of broken invariants of the whole run. */
};

/* One round each; every function checks what it did. */
void round_forks(struct worker *self);
void round_pipes(struct worker *self);
void round_threads(struct worker *self);
void round_signals(struct worker *self);
void round_mappings(struct worker *self);
void round_files(struct worker *self);
void round_events(struct worker *self);

/* Prints one line about a broken invariant and stops the run. Does not return: the state of the worker is worthless. */
__attribute__((noreturn, format(printf, 2, 3))) void broken(struct worker *self, const char *format, ...);

/* Checks an invariant that does not depend on luck. */
#define must_hold(self, condition)                                                                          \
    ((condition) ? (void)0 : broken(self, "%s:%d: %s (errno %d)", __FILE__, __LINE__, #condition, errno))

/* A number below the limit. */
uint32_t below(struct worker *self, uint32_t limit);

/* Forks; in the child, runs body and exits with its value. */
pid_t start(struct worker *self, int (*body)(struct worker *, void *), void *argument);

/* Waits for a child of start; its raw status. */
int finish(struct worker *self, pid_t child);

#endif
