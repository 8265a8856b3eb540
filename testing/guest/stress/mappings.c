/*
 * Mappings: random mmap, munmap, mprotect, madvise, mremap and forks over a small arena, against a model of every page.
 *
 * The model knows for each page whether it is mapped, what may be done with it and the byte it must show. A reader
 * thread keeps touching one page of its own meanwhile, so that other CPUs hold translations that the changes must not
 * disturb.
 */
#include "stress.h"

enum { ARENA = 48, STEPS = 60 };

struct page {
    int mapped, protection;
    unsigned char value; /* The first byte; the last byte is its complement once written. */
    int written;
};

static unsigned char *arena;
static struct page model[ARENA];
static __thread sigjmp_buf back;
static volatile int quiet; /* Ends the reader thread. */

static void escape(int number) { siglongjmp(back, number); }

/* What a load shows, or -1 when it faults. */
static int load(volatile unsigned char *where)
{
    if (sigsetjmp(back, 1))
        return -1;
    return *where;
}

static int store(volatile unsigned char *where, unsigned char value)
{
    if (sigsetjmp(back, 1))
        return -1;
    *where = value;
    return 0;
}

static void check_page(struct worker *self, int index)
{
    struct page *page = &model[index];
    unsigned char *where = arena + index * PAGE;
    int readable = page->mapped && page->protection != PROT_NONE;
    int first = load(where), last = load(where + PAGE - 1);
    if (first != (readable ? page->value : -1))
        broken(self, "page %d shows %d, not %d (mapped %d, protection %d)", index, first, readable ? page->value : -1,
               page->mapped, page->protection);
    int complement = page->written ? (unsigned char)~page->value : 0;
    if (last != (readable ? complement : -1))
        broken(self, "page %d ends with %d, not %d", index, last, readable ? complement : -1);
}

static void touch(struct worker *self, int index)
{
    struct page *page = &model[index];
    unsigned char value = (unsigned char)below(self, 256);
    int may = page->mapped && (page->protection & PROT_WRITE);
    int result = store(arena + index * PAGE, value);
    if (result != (may ? 0 : -1))
        broken(self, "store to page %d %s (mapped %d, protection %d)", index, result ? "faulted" : "worked",
               page->mapped, page->protection);
    if (may) {
        must_hold(self, store(arena + index * PAGE + PAGE - 1, (unsigned char)~value) == 0);
        page->value = value, page->written = 1;
    }
}

static void map_span(struct worker *self, int first, int count)
{
    void *where = arena + first * PAGE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    must_hold(self, mmap(where, count * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == where);
    for (int i = first; i < first + count; i++)
        model[i] = (struct page){ 1, PROT_READ | PROT_WRITE, 0, 0 };
}

static void unmap_span(struct worker *self, int first, int count)
{
    must_hold(self, munmap(arena + first * PAGE, count * PAGE) == 0);
    for (int i = first; i < first + count; i++)
        model[i] = (struct page){ 0 };
}

static int all_mapped(int first, int count)
{
    int mapped = 1;
    for (int i = first; i < first + count; i++)
        mapped &= model[i].mapped;
    return mapped;
}

static void protect_span(struct worker *self, int first, int count)
{
    static const int choices[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
    int protection = choices[below(self, 3)], whole = all_mapped(first, count);
    int result = mprotect(arena + first * PAGE, count * PAGE, protection);
    must_hold(self, whole ? result == 0 : result == -1 && errno == ENOMEM);
    /* Up to the first hole the change took effect. */
    for (int i = first; i < first + count && model[i].mapped; i++)
        model[i].protection = protection;
}

static void forget_span(struct worker *self, int first, int count)
{
    int whole = all_mapped(first, count), result = madvise(arena + first * PAGE, count * PAGE, MADV_DONTNEED);
    must_hold(self, whole ? result == 0 : result == -1 && errno == ENOMEM);
    for (int i = first; i < first + count; i++)
        if (model[i].mapped)
            model[i].value = 0, model[i].written = 0;
}

/* Moves one page to another place of the arena. */
static void move_page(struct worker *self, int from, int to)
{
    if (from == to || !model[from].mapped)
        return;
    void *target = arena + to * PAGE;
    must_hold(self, mremap(arena + from * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    model[to] = model[from];
    model[from] = (struct page){ 0 };
}

static int verify_and_scribble(struct worker *self, void *unused)
{
    (void)unused;
    for (int i = 0; i < ARENA; i++)
        check_page(self, i);
    for (int i = 0; i < ARENA; i++)
        touch(self, i);
    for (int i = 0; i < ARENA; i++)
        check_page(self, i);
    return 0;
}

static void *keep_reading(void *page)
{
    while (!quiet)
        if (load(page) != 0x5a)
            return page;
    return NULL;
}

static void step(struct worker *self)
{
    int first = (int)below(self, ARENA), count = 1 + (int)below(self, 8);
    if (first + count > ARENA)
        count = ARENA - first;
    switch (below(self, 9)) {
    case 0: map_span(self, first, count); break;
    case 1: unmap_span(self, first, count); break;
    case 2: case 3: protect_span(self, first, count); break;
    case 4: forget_span(self, first, count); break;
    case 5: move_page(self, first, (int)below(self, ARENA)); break;
    default:
        for (int i = first; i < first + count; i++)
            touch(self, i);
    }
    for (int i = first; i < first + count; i++)
        check_page(self, i);
    self->operations++;
}

void round_mappings(struct worker *self)
{
    struct sigaction action = { .sa_handler = escape };
    must_hold(self, sigaction(SIGSEGV, &action, NULL) == 0);
    unsigned char *own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must_hold(self, own != MAP_FAILED);
    *own = 0x5a;
    quiet = 0;
    pthread_t reader;
    must_hold(self, pthread_create(&reader, NULL, keep_reading, own) == 0);
    arena = mmap(NULL, ARENA * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must_hold(self, arena != MAP_FAILED);
    map_span(self, 0, ARENA);
    for (int i = 0; i < STEPS; i++) {
        step(self);
        if (below(self, 20) == 0) {
            must_hold(self, finish(self, start(self, verify_and_scribble, NULL)) == 0);
            for (int page = 0; page < ARENA; page++)
                check_page(self, page);
        }
    }
    quiet = 1;
    void *failed;
    must_hold(self, pthread_join(reader, &failed) == 0);
    if (failed)
        broken(self, "the reader's own page changed");
    must_hold(self, munmap(own, PAGE) == 0);
    must_hold(self, munmap(arena, ARENA * PAGE) == 0);
}
