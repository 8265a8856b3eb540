/*
 * The vocabulary of the system call fuzzer: a seed becomes programs, a program threads, a thread steps, a step a call.
 *
 * `fuzz supervise` runs as root and starts one worker after the other (supervise.c), each an exec of this file as
 * `fuzz work`, as user WORKER_ID without a privilege. Beside them stand processes that must not notice anything
 * (watched.c) and files that must not change (fingerprint.c).
 *
 * Everything a step does follows from (seed, program, thread, step): its choices do not depend on what an earlier step
 * returned, only on numbers of slots, whose content may differ. So steps can be left out and the others stay as they
 * are, which is what shrinking needs. `fuzz print SEED PROGRAM STEPS` writes a program down without running it.
 *
 * Calls are made by hand: a worker has no use of thread-local storage or of errno, since it may lose both.
 */
#ifndef FUZZ_H
#define FUZZ_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE 4096UL
enum {
    WORKER_ID = 65534,
    CHECKER_ID = 65533,
    HEART_ID = 65532,
    CALLS = 512,    /* At most so many rows in the table of calls. */
    THREADS = 3,    /* At most, of one program. */
    STEPS = 192,    /* At most, of one thread. */
    DESCRIPTORS = 48,
    FIXED_DESCRIPTORS = 40, /* The others hold results. */
    AREAS = 18,
    FIXED_AREAS = 14,
    CHILDREN = 8,
    SCRATCH = 8192, /* Bytes of structures for one step. */
    WORKERS = 8,    /* At most at the same time. */
};

/* What an argument is; the table of calls (abi.h) is generated from the kernel's own. */
enum kind {
    KIND_FD, KIND_DIR_FD, KIND_PATH, KIND_STR, KIND_PTR, KIND_SIZE, KIND_OFFSET, KIND_MODE, KIND_PID, KIND_ID, KIND_INT,
    KIND_UINT, KIND_LONG, KIND_HEX, KIND_SIGNAL, KIND_FLAGS, KIND_CLONE_FLAGS, KIND_TIME,
};
enum result { RESULT_INT, RESULT_FD, RESULT_ADDRESS, RESULT_SIZE, RESULT_PID, RESULT_NEVER, RESULT_HEX };

struct value { uint64_t bits; const char *name; };
struct field { uint64_t mask; int count; const struct value *values; };
struct flag_set { const char *name; int fields; const struct field *field; int bits; const struct value *bit; };
struct argument { const char *name; uint8_t kind; int16_t flags; };
struct call { uint16_t number; uint8_t answered, result, count; const char *name; struct argument arguments[6]; };

extern const struct call calls[];
extern const int call_count;
extern const struct flag_set flag_sets[];

/* The row of a call's number; -1 without one. */
int call_index(int number);
int call_named(const char *name);

/* What supervisor and workers share: counts per row of the table, and where each worker is. */
struct count { uint64_t made, succeeded, errors[3]; };
struct place { volatile int program, thread, step, call; };
struct board {
    struct count counts[CALLS];
    struct place places[WORKERS];
};
#define BOARD_FD 200
#define BOARD_AT ((struct board *)0x7d0000000000UL)

struct area { unsigned long at, length; const char *name; };

struct thread {
    int index;
    volatile int tid;
    volatile unsigned moved;
    unsigned seen;
    unsigned long stack;
    uint8_t scratch[SCRATCH] __attribute__((aligned(64)));
};

/* The program that this process runs. */
struct program {
    uint64_t seed;
    int number, slot;
    int threads, steps;       /* As planned. */
    int depth;                /* Number of forks that led here, */
    uint64_t branch;          /* and which. */
    int set[64], set_size;    /* Rows of the calls it favours. */
    int hot_fds[3], hot_areas[2];
    bool focused, handles;    /* Favours these; catches signals. */
    uint8_t chosen[THREADS][STEPS]; /* Steps that are made. */
    bool without[CALLS];      /* Calls that are not made, so that what they lead to does not hide the rest. */
    int fds[DESCRIPTORS];
    struct area areas[AREAS];
    int pids[8];              /* Supervisor, root's process, the checker, the heart. */
    volatile int children[CHILDREN];
    uint8_t token[16];        /* Of the secret, each byte turned by TURN. */
    struct board *board;
    struct thread thread[THREADS];
};
#define TURN 0x55
extern struct program program;

/* Choices of one step. `text` is NULL unless the step is only written down. */
struct step {
    uint64_t random;
    struct thread *self;
    int at;
    size_t scratch;           /* Used bytes of it. */
    unsigned long length;     /* Of the structure or range before, for the argument that says it; 0 without one. */
    const struct call *call;
    char *text;
    size_t room;
};

/* choose.c */
uint64_t mix(uint64_t a, uint64_t b);
uint64_t any(struct step *step);
unsigned below(struct step *step, unsigned limit);
static inline bool chance(struct step *step, unsigned percent) { return below(step, 100) < percent; }
__attribute__((format(printf, 2, 3))) void say(struct step *step, const char *format, ...);

/* scalars.c: values of arguments that are no addresses. */
long choose_fd(struct step *step);
long choose_dir_fd(struct step *step);
long choose_size(struct step *step);
long choose_offset(struct step *step);
long choose_number(struct step *step);
long choose_pid(struct step *step);
long choose_id(struct step *step);
long choose_signal(struct step *step);
long choose_flags(struct step *step, int set, bool clone);
long choose_time(struct step *step);
long choose_seconds(struct step *step, long *nanoseconds);

/* areas.c: memory of every kind. */
void place_areas(void);
void make_areas(void);
unsigned long choose_address(struct step *step, unsigned long size);
unsigned long choose_range(struct step *step, unsigned long *length);
void note_area(int slot, unsigned long at, unsigned long length);
void *scratch(struct step *step, size_t size);
bool leaks_secret(void);

/* objects.c, paths.c: descriptors and names of every kind. */
void make_objects(void);
const char *object_name(int slot);
unsigned long choose_path(struct step *step);
unsigned long choose_string(struct step *step, const char *argument);
void make_files(void);

/* shapes.c: structures; typed.c, correct.c: all arguments of a call, some of which depend on another. */
unsigned long choose_structure(struct step *step, const char *argument);
long choose_word(struct step *step);
void correct(struct step *step, long *arguments);
void choose_arguments(struct step *step, long *arguments);
void prepare(struct step *step, const long *arguments);

/* steps.c, special.c: one call. */
void plan(uint64_t seed, int number, const char *spec);
void leave_out(const char *names);
void run_steps(struct thread *self, int from, int until);
void describe(void);
long make_call(struct step *step, long *arguments);
void count(int row, long result);

/* worker.c, signals.c */
int work(int count, char **words);
int tail(void);
void catch_signals(void);
void break_frame(struct step *step);
long spawn(unsigned long flags, unsigned long stack, void (*body)(void *), void *argument);

/* supervise.c, watched.c, fingerprint.c */
int supervise(int count, char **words);
struct watch_board;
struct watch_board *start_watched(int pids[4], const uint8_t token[16]);
void look_after_watched(struct watch_board *watched, long long now);
void take_fingerprints(void);
void compare_fingerprints(void);
__attribute__((format(printf, 2, 3))) void finding(const char *kind, const char *format, ...);
int set_id_program(void);

static inline long call6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
static inline bool failed(long result) { return (unsigned long)result > -4096UL; }
#define raw(number, ...) raw_(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define raw_(number, a, b, c, d, e, f, ...) \
    call6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline long own_pid(void) { return raw(39); }
static inline long own_tid(void) { return raw(186); }

#endif
