/*
 * A worker: one program as an unprivileged process, with a ticker that wakes what blocks.
 */
#include "fuzz.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { STACK = 64 * 1024, TICK_MS = 4, STUCK = 60 /* Ticks without a step. */ };

static volatile int running;

static void thread_main(void *argument)
{
    struct thread *self = argument;
    self->tid = (int)own_tid();
    run_steps(self, 0, program.steps);
    __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
    raw(SYS_exit, 0);
}

/* Interrupts each thread that stands still; gives up when none has moved for long. */
static void tick(void *argument)
{
    (void)argument;
    uint64_t most = ~(1ULL << (SIGALRM - 1));
    raw(SYS_rt_sigprocmask, SIG_SETMASK, &most, 0, 8);
    int pid = (int)own_pid(), still = 0;
    for (;;) {
        struct timespec pause = { 0, TICK_MS * 1000000L };
        raw(SYS_nanosleep, &pause, 0);
        bool moved = false;
        for (int i = 0; i < program.threads; i++) {
            struct thread *thread = &program.thread[i];
            if (thread->moved != thread->seen)
                moved = true;
            else
                raw(SYS_tgkill, pid, thread->tid, SIGALRM);
            thread->seen = thread->moved;
        }
        still = moved ? 0 : still + 1;
        if (still > STUCK)
            raw(SYS_exit_group, 0);
    }
}

static long start(void (*body)(void *), void *argument)
{
    enum { FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM };
    long stack = raw(SYS_mmap, 0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return failed(stack) ? stack : spawn(FLAGS, (unsigned long)stack + STACK - 64, body, argument);
}

/* Every id must still be the worker's, and no capability there. */
static bool is_privileged(void)
{
    uint32_t ids[6], head[2] = { 0x20080522, 0 }, data[6] = { 0 };
    raw(SYS_getresuid, &ids[0], &ids[1], &ids[2]);
    raw(SYS_getresgid, &ids[3], &ids[4], &ids[5]);
    for (int i = 0; i < 6; i++)
        if (ids[i] != WORKER_ID)
            return true;
    raw(SYS_capget, head, data);
    return data[0] || data[1] || data[2] || data[3] || data[4] || data[5];
}

static void read_token(const char *text)
{
    for (int i = 0; i < 16; i++) {
        char pair[3] = { text[2 * i], text[2 * i + 1], 0 };
        program.token[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

/* fuzz work SEED NUMBER SPEC SLOT TOKEN SUPERVISOR ROOT CHECKER HEART WITHOUT */
int work(int count, char **words)
{
    if (count != 12)
        return 2;
    program.slot = atoi(words[5]);
    read_token(words[6]);
    for (int i = 0; i < 4; i++)
        program.pids[i] = atoi(words[7 + i]);
    leave_out(words[11]);
    plan(strtoul(words[2], NULL, 0), atoi(words[3]), words[4]);
    long board = raw(SYS_mmap, BOARD_AT, sizeof *program.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
        BOARD_FD, 0);
    if (failed(board))
        return 3;
    raw(SYS_close, BOARD_FD);
    program.board = BOARD_AT;
    catch_signals();
    make_files();
    make_areas();
    make_objects();
    /* A copy that only waits makes every private page one that is shared until it is written. */
    if (program.number % 3 == 0 && raw(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
        struct timespec pause = { 0, 300000000 };
        raw(SYS_nanosleep, &pause, 0);
        raw(SYS_exit_group, 0);
    }
    running = program.threads - 1;
    program.thread[0].tid = (int)own_tid();
    for (int i = 1; i < program.threads; i++) {
        program.thread[i].index = i;
        if (failed(start(thread_main, &program.thread[i])))
            running--;
    }
    start(tick, NULL);
    run_steps(&program.thread[0], 0, program.steps);
    for (int i = 0; i < 200 && running > 0; i++) {
        struct timespec pause = { 0, 2000000 };
        raw(SYS_nanosleep, &pause, 0);
    }
    if (program.depth == 0 && is_privileged())
        raw(SYS_exit_group, 40);
    if (leaks_secret())
        raw(SYS_exit_group, 41);
    raw(SYS_exit_group, 0);
    return 0;
}

/* What exec leads to: a short life that tells it came about. */
int tail(void)
{
    return is_privileged() ? 40 : 33;
}
