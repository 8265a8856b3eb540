/*
 * Values of arguments that are no addresses: mostly ones that make sense, with the edges of every type between them.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>

static const long edges[] = {
    0, 1, -1, 2, 7, 8, 63, 64, 65, 127, 128, 255, 256, 1023, 4095, 4096, 4097, 65535, 65536, 1 << 20, INT_MAX - 1,
    INT_MAX,
    INT_MIN, -2, -4096, UINT_MAX, 1L << 32, (1L << 32) + 1, LONG_MAX, LONG_MIN, LONG_MAX - 4095, 1L << 47,
    (1L << 47) - 1,
    0x7ffff000, 0x7ffffffffffff000, 1L << 62,
};
enum { EDGES = sizeof edges / sizeof edges[0] };

static long edge(struct step *step)
{
    if (chance(step, 10))
        return (long)any(step);
    return edges[below(step, EDGES)];
}

static long slot_fd(struct step *step)
{
    int slot = program.focused && chance(step, 70) ? program.hot_fds[below(step, 3)] : (int)below(step, DESCRIPTORS);
    say(step, "fd_%s", object_name(slot));
    return program.fds[slot];
}

long choose_fd(struct step *step)
{
    static const int odd[] = { -1, AT_FDCWD, 0, 1, 2, 9999, INT_MAX, INT_MIN, 127, 128, 1023 };
    if (chance(step, 93))
        return slot_fd(step);
    long fd = odd[below(step, sizeof odd / sizeof odd[0])];
    if (chance(step, 10))
        fd |= 1L << 32;
    say(step, "%ld", fd);
    return fd;
}

long choose_dir_fd(struct step *step)
{
    if (chance(step, 60)) {
        say(step, "AT_FDCWD");
        return AT_FDCWD;
    }
    if (chance(step, 50)) {
        say(step, "fd_%s", object_name(2));
        return program.fds[2];
    }
    return choose_fd(step);
}

long choose_size(struct step *step)
{
    static const long usual[] = { 8, 1, 4, 16, 24, 32, 64, 100, 128, 512, 4096, 8192, 4095, 4097, 12288, 65536, 0 };
    long size = chance(step, 85) ? usual[below(step, sizeof usual / sizeof usual[0])] : edge(step);
    say(step, "%#lx", size);
    return size;
}

long choose_offset(struct step *step)
{
    static const long usual[] = { 0, 1, 4095, 4096, 4097, 8192, 65536, 100, 512 };
    long offset = chance(step, 75) ? usual[below(step, sizeof usual / sizeof usual[0])] : edge(step);
    say(step, "%#lx", offset);
    return offset;
}

long choose_number(struct step *step)
{
    long number = chance(step, 75) ? below(step, 5) : edge(step);
    say(step, "%ld", number);
    return number;
}

long choose_pid(struct step *step)
{
    static const char *const watched[] = { "supervisor", "root", "checker", "heart" };
    unsigned which = below(step, 100);
    if (which < 30) {
        say(step, "0");
        return 0;
    }
    if (which < 50) {
        say(step, "self");
        return own_pid();
    }
    if (which < 65) {
        int thread = below(step, THREADS);
        say(step, "thread%d", thread);
        return program.thread[thread].tid;
    }
    if (which < 80) {
        int child = below(step, CHILDREN);
        say(step, "child%d", child);
        return program.children[child];
    }
    if (which < 88) {
        int one = below(step, 4);
        say(step, "%s", watched[one]);
        return program.pids[one];
    }
    if (which < 91) {
        say(step, "-group");
        return -raw(111);
    }
    static const long odd[] = { 1, 2, 99999, INT_MIN, INT_MAX, 0x400000, -2, -99999, 4194304 };
    long pid = which < 98 ? odd[below(step, sizeof odd / sizeof odd[0])] : -1;
    say(step, "%ld", pid);
    return pid;
}

long choose_id(struct step *step)
{
    static const long ids[] = { WORKER_ID, WORKER_ID, WORKER_ID, -1, 0, CHECKER_ID, 1000, 65535, UINT_MAX, INT_MIN };
    long id = ids[below(step, sizeof ids / sizeof ids[0])];
    say(step, "%ld", id);
    return id;
}

long choose_signal(struct step *step)
{
    static const int usual[] = { SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGIO, SIGURG, SIGHUP, SIGTERM, SIGCONT, 32, 34,
        40, 64 };
    long signal;
    if (chance(step, 70))
        signal = usual[below(step, sizeof usual / sizeof usual[0])];
    else if (chance(step, 10))
        signal = chance(step, 50) ? SIGKILL : SIGSTOP;
    else if (chance(step, 85))
        signal = below(step, 66);
    else
        signal = edge(step);
    if ((signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) && chance(step, 80))
        signal = 0;
    say(step, "sig%ld", signal);
    return signal;
}

/* Of each field one value, of the bits usually one or two. */
static uint64_t fitting(struct step *step, const struct flag_set *set)
{
    uint64_t word = 0;
    for (int i = 0; i < set->fields; i++)
        word |= set->field[i].values[below(step, set->field[i].count)].bits;
    if (!set->bits)
        return word;
    static const uint8_t how_many[] = { 0, 0, 0, 0, 1, 1, 1, 2, 2, 3 };
    for (int left = how_many[below(step, 10)]; left > 0; left--)
        word |= set->bit[below(step, set->bits)].bits;
    return word;
}

static void say_flags(struct step *step, const struct flag_set *set, uint64_t word)
{
    const char *between = "";
    uint64_t left = word;
    for (int i = 0; step->text && i < set->fields; i++)
        for (int v = 0; v < set->field[i].count; v++)
            if ((word & set->field[i].mask) == set->field[i].values[v].bits) {
                say(step, "%s%s", between, set->field[i].values[v].name);
                between = "|";
                left &= ~set->field[i].mask;
                break;
            }
    for (int i = 0; step->text && i < set->bits; i++)
        if (set->bit[i].bits && (left & set->bit[i].bits) == set->bit[i].bits) {
            say(step, "%s%s", between, set->bit[i].name);
            between = "|";
            left &= ~set->bit[i].bits;
        }
    if (left || !*between)
        say(step, "%s%#lx", between, (unsigned long)left);
}

long choose_flags(struct step *step, int index, bool clone)
{
    const struct flag_set *set = &flag_sets[index];
    unsigned how = below(step, 100);
    uint64_t word = fitting(step, set);
    if (how >= 88 && how < 92)
        for (int i = 0; i < set->bits; i++)
            word |= set->bit[i].bits;
    else if (how >= 92 && how < 96)
        word |= 1ULL << below(step, 32);
    else if (how >= 96)
        word = (uint64_t)edge(step);
    if (clone)
        word = (word & ~0xffULL) | (chance(step, 80) ? SIGCHLD : below(step, 66));
    say_flags(step, set, word);
    return (long)word;
}

/* Milliseconds or seconds, as the call has it: short, since nothing waits for a worker. */
long choose_time(struct step *step)
{
    static const long usual[] = { 0, 0, 0, 1, 1, 2, 5, 10, -1, 100 };
    long time = chance(step, 93) ? usual[below(step, sizeof usual / sizeof usual[0])] : edge(step);
    say(step, "%ld", time);
    return time;
}

long choose_seconds(struct step *step, long *nanoseconds)
{
    static const long usual[] = { 0, 0, 1, 1000, 50000, 1000000, 3000000, 10000000, 999999999 };
    long seconds = 0;
    *nanoseconds = usual[below(step, sizeof usual / sizeof usual[0])];
    if (chance(step, 8))
        *nanoseconds = edge(step);
    if (chance(step, 8))
        seconds = edge(step);
    return seconds;
}
