/*
 * truncate(2), fallocate(2), mmap(2): once the call has returned, no mapping shows what was cut off: neither one that
 * mremap(2) moved meanwhile, nor one that fork(2) copied meanwhile, nor a private copy beyond the end.
 * contract: timeout=60
 */
#include "../contract.h"
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdatomic.h>

#define PAGES 512UL
#define ROUNDS 20
/* In a round: moves without end would keep Linux from the file for very long. */
#define MOVES 400
#define FORKS 24

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

/* What a byte of a mapping is now: its value, or -1 for SIGBUS. */
static int probe(volatile char *where)
{
    return sigsetjmp(back, 1) ? -1 : *where;
}

enum kind { SHARED, PRIVATE, PUNCHED };
static const char *const names[] = { "shared, truncated", "private, truncated", "shared, punched" };

static int fd;
static char *places;
static char *volatile at;
static atomic_int moving, begun, moved;

/* Every other page, so that the ranges stay apart: many to be visited between the two places of what moves. */
static void fill_ranges(char *base)
{
    for (unsigned long page = 0; page < PAGES; page++) {
        char *to = base + 2 * page * PAGE;
        need(mmap(to, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == to);
    }
}

static void *mover(void *unused)
{
    char *low = places, *high = places + (2 * PAGES + 8) * PAGE;
    for (;;) {
        while (!moving)
            sched_yield();
        begun = 1;
        for (int count = 0; moving && count < MOVES; count++) {
            char *to = at == low ? high : low;
            need(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
            at = to;
        }
        while (moving)
            sched_yield();
        moved = 1;
    }
    return unused;
}

static void cut(enum kind kind)
{
    if (kind == PUNCHED)
        need(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) == 0);
    else
        need(ftruncate(fd, 0) == 0);
}

/* Leaves no gap, in which the C library would map something of its own. */
static void put_away(void)
{
    need(mmap(at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
}

static void restore(void)
{
    need(ftruncate(fd, PAGE) == 0 && pwrite(fd, "x", 1, 0) == 1);
}

static void map_at(char *where, enum kind kind)
{
    int flags = MAP_FIXED | (kind == PRIVATE ? MAP_PRIVATE : MAP_SHARED);
    need(mmap(where, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0) == where);
    at = where;
    need(*where == 'x');
    if (kind == PRIVATE)
        *where = 'y';
}

static void race_with_moves(enum kind kind)
{
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        restore();
        map_at(places, kind);
        begun = moved = 0;
        moving = 1;
        while (!begun)
            sched_yield();
        cut(kind);
        moving = 0;
        while (!moved)
            sched_yield();
        wrong += probe(at) != (kind == PUNCHED ? 0 : -1);
        put_away();
    }
    say("%s while it moves: %s", names[kind], wrong ? "still there" : "gone");
}

/* The children wait until the file is cut, then look. */
static void race_with_forks(enum kind kind)
{
    int wrong = 0;
    struct { atomic_int mapped, begun, done; } *shared = shared_page();
    for (int round = 0; round < 3; round++) {
        restore();
        shared->mapped = shared->begun = shared->done = 0;
        pid_t cutter = fork();
        need(cutter != -1);
        if (cutter == 0) {
            while (!shared->mapped)
                sched_yield();
            shared->begun = 1;
            cut(kind);
            shared->done = 1;
            _exit(0);
        }
        /* Behind the other ranges, which are visited first. */
        map_at(places + (2 * PAGES + 8) * PAGE, kind);
        shared->mapped = 1;
        pid_t children[FORKS];
        int count = 0;
        while (!shared->begun)
            sched_yield();
        while (count < FORKS && !shared->done) {
            children[count] = fork();
            need(children[count] != -1);
            if (children[count] == 0) {
                while (!shared->done)
                    sched_yield();
                _exit(probe(at) != (kind == PUNCHED ? 0 : -1));
            }
            count++;
        }
        need(reap(cutter) == 0);
        for (int one = 0; one < count; one++)
            wrong += reap(children[one]) != 0;
        put_away();
    }
    say("%s while it is copied: %s", names[kind], wrong ? "still there" : "gone");
}

int main(void)
{
    pthread_t thread;
    catch_signal(SIGBUS, note, SA_NODEFER);
    scratch();
    fd = open("file", O_RDWR | O_CREAT, 0600);
    need(fd != -1);
    restore();
    places = mmap(NULL, (2 * PAGES + 16) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(places != MAP_FAILED);
    fill_ranges(places + 4 * PAGE);
    for (enum kind kind = SHARED; kind <= PUNCHED; kind++)
        race_with_forks(kind);
    need(pthread_create(&thread, NULL, mover, NULL) == 0);
    for (enum kind kind = SHARED; kind <= PUNCHED; kind++)
        race_with_moves(kind);
    return 0;
}
