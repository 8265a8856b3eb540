/*
 * mremap(2): an ordinary user moves very much memory with one call, or terabytes that hold almost nothing. A thread of
 * higher priority runs meanwhile on the same processor, and what was there arrives.
 * contract: timeout=60
 */
#include "parts.h"
#include <sys/prctl.h>

#define SIZE (160UL << 20)
#define ROOM (SIZE + (4UL << 20))
#define SPARSE (6UL << 40)
#define ATTEMPTS 6
/* A call that takes no longer lets others wait for no longer. */
#define SHORT_NS 5000000L

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void begin(void)
{
    sleep_ms(2);
    notes->turns = 0;
    notes->took = -now_ns();
    notes->changing = 1;
}

static void end(void)
{
    notes->changing = 0;
    notes->took += now_ns();
}

/* Pages that say which they are. */
static char *populated(int sharing)
{
    char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    need(at != MAP_FAILED);
    for (size_t page = 0; page < SIZE; page += PAGE)
        *(size_t *)(at + page) = page;
    return at;
}

static void check_pages(char *at)
{
    for (size_t page = 0; page < SIZE; page += PAGE)
        need(*(size_t *)(at + page) == page);
}

/* Not to where whole tables of pages could go as they are. */
static char *elsewhere(void)
{
    char *at = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(at != MAP_FAILED);
    return at;
}

static char *move(char *from, size_t old, size_t new, int flags)
{
    char *room = elsewhere(), *to = room + ((size_t)from + PAGE - (size_t)room) % (2UL << 20);
    begin();
    char *moved = mremap(from, old, new, MREMAP_MAYMOVE | MREMAP_FIXED | flags, to);
    end();
    need(moved == to);
    return moved;
}

static int is_mapped(char *at)
{
    unsigned char in_core;
    return mincore(at, PAGE, &in_core) == 0;
}

static void move_private(void)
{
    char *from = populated(MAP_PRIVATE), *to = move(from, SIZE, SIZE, 0);
    check_pages(to);
    need(!is_mapped(from) && !is_mapped(from + SIZE / 2) && !is_mapped(from + SIZE - PAGE));
    need(munmap(to, SIZE) == 0 && !is_mapped(to));
}

static void move_shared(void) { check_pages(move(populated(MAP_SHARED), SIZE, SIZE, 0)); }

static void move_and_grow(void)
{
    char *to = move(populated(MAP_PRIVATE), SIZE, SIZE + (1UL << 20), 0);
    check_pages(to);
    need(to[SIZE] == 0 && to[SIZE + (1UL << 20) - 1] == 0);
}

static void move_and_shrink(void)
{
    char *from = populated(MAP_PRIVATE);
    char *to = move(from, SIZE, SIZE - (16UL << 20), 0);
    for (size_t page = 0; page < SIZE - (16UL << 20); page += PAGE)
        need(*(size_t *)(to + page) == page);
    need(!is_mapped(from + SIZE - PAGE));
}

static void move_and_keep(void)
{
    char *from = populated(MAP_PRIVATE), *to = move(from, SIZE, SIZE, 4 /* MREMAP_DONTUNMAP */);
    check_pages(to);
    for (size_t page = 0; page < SIZE; page += 64 * PAGE)
        need(from[page] == 0);
}

static void move_nothing(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *from = mmap(NULL, SPARSE + 2 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    /* It cannot grow where it is. */
    need(from != MAP_FAILED && munmap(from + SPARSE, PAGE) == 0);
    for (size_t at = 0; at < SPARSE; at += SPARSE / 8)
        *(size_t *)(from + at) = at;
    begin();
    char *to = mremap(from, SPARSE, SPARSE + 2 * PAGE, MREMAP_MAYMOVE);
    end();
    need(to != MAP_FAILED && to != from);
    for (size_t at = 0; at < SPARSE; at += SPARSE / 8)
        need(*(size_t *)(to + at) == at);
}

static int attempt(void *change)
{
    stay_on_the_first_processor();
    need(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    ((void (*)(void))change)();
    return 0;
}

static void judge(const char *what, void (*change)(void))
{
    int good = 0;
    for (int number = 0; number < ATTEMPTS && !good; number++) {
        need(as_nobody(attempt, change) == 0);
        good = notes->turns >= 5 || notes->took < SHORT_NS;
    }
    say("%s: others %s", what, good ? "need not wait" : "wait until it ends");
}

int main(void)
{
    notes = shared_page();
    pid_t watcher = spawn(watch, NULL);
    while (!notes->ready)
        sleep_ms(1);
    judge("private memory", move_private);
    judge("shared memory", move_shared);
    judge("memory that grows", move_and_grow);
    judge("memory that shrinks", move_and_shrink);
    judge("memory whose place stays", move_and_keep);
    judge("terabytes of nothing", move_nothing);
    notes->stop = 1;
    show_status("the watcher", reap(watcher));
    return 0;
}
