/*
 * Memory of every kind, at fixed addresses, so that a written program means the same in every run.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { PAGES = 8 };
#define BASE 0x100000000000UL
#define APART 0x10000000UL

static const struct { const char *name; int protection, flags; unsigned long length; const char *file;
    } kinds[FIXED_AREAS] = {
    { "rw", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, PAGES * PAGE, NULL },
    { "shared", PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, PAGES * PAGE, NULL },
    { "ro", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, PAGES * PAGE, NULL },
    { "none", PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, PAGES * PAGE, NULL },
    { "wo", PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, PAGES * PAGE, NULL },
    { "file_private", PROT_READ | PROT_WRITE, MAP_PRIVATE, PAGES * PAGE, "a" },
    { "file_shared", PROT_READ | PROT_WRITE, MAP_SHARED, PAGES * PAGE, "a" },
    { "passwd", PROT_READ | PROT_WRITE, MAP_PRIVATE, PAGE, "/etc/passwd" },
    { "program", PROT_READ, MAP_PRIVATE, PAGES * PAGE, "/bin/busybox" },
    { "exec", PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, PAGES * PAGE, NULL },
    { "edge", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, PAGE, NULL },
    { "cow", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, PAGES * PAGE, NULL },
    { "huge", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 1024 * PAGE, NULL },
    { "zero", PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, PAGES * PAGE, NULL },
};

void place_areas(void)
{
    for (int i = 0; i < AREAS; i++) {
        struct area *area = &program.areas[i];
        area->at = BASE + i * APART;
        area->length = i < FIXED_AREAS ? kinds[i].length : PAGES * PAGE;
        area->name = i < FIXED_AREAS ? kinds[i].name : "made";
    }
}

void make_areas(void)
{
    for (int i = 0; i < FIXED_AREAS; i++) {
        struct area *area = &program.areas[i];
        long fd = -1;
        if (kinds[i].file)
            fd = raw(SYS_openat, AT_FDCWD, kinds[i].file, kinds[i].file[0] == '/' ? O_RDONLY : O_RDWR, 0);
        raw(SYS_mmap, area->at, area->length, kinds[i].protection, kinds[i].flags | MAP_FIXED, fd, 0);
        if (fd >= 0)
            raw(SYS_close, fd);
    }
    /* A timeout that is over at once, a lock's word that is free, a path: what zeros happen to mean. */
    memset((void *)program.areas[2].at, 0x11, 16);
    raw(SYS_mprotect, program.areas[2].at, program.areas[2].length, PROT_READ);
    memset((void *)program.areas[11].at, 0, PAGES * PAGE);
    raw(SYS_madvise, program.areas[12].at, program.areas[12].length, MADV_HUGEPAGE);
    *(volatile char *)program.areas[12].at = 1;
}

void note_area(int slot, unsigned long at, unsigned long length)
{
    struct area *area = &program.areas[FIXED_AREAS + slot];
    area->at = at;
    area->length = length == 0 || length > 1024 * PAGE ? PAGE : length;
}

static int choose_area(struct step *step)
{
    return program.focused && chance(step, 75) ? program.hot_areas[below(step, 2)] : (int)below(step, AREAS);
}

static unsigned long bad_address(struct step *step)
{
    static const unsigned long bad[] = {
        0, 0, 1, 8, 0xfff, 0x1000, 0x10000, 0x400000, 0x7fff00000000, 0x7ffffffff000, 0x7fffffffffff, 0x800000000000,
        0x8000000000000000, 0xffff800000000000, 0xffff888000000000, 0xffffffff80000000, 0xffffffff81000000,
        0xffffffffffffffff, 0xfffffffffffff000, 0xffffffffff600000, 0x7ffffffffffff000, 0x123456789000,
        0x00ff7fffffffffff,
    };
    unsigned long at = bad[below(step, sizeof bad / sizeof bad[0])];
    say(step, "%#lx", at);
    return at;
}

unsigned long choose_address(struct step *step, unsigned long size)
{
    if (chance(step, 14))
        return bad_address(step);
    int slot = choose_area(step);
    const struct area *area = &program.areas[slot];
    unsigned long offset = 0;
    switch (below(step, 8)) {
    case 0: offset = 8 * below(step, 512); break;
    case 1: offset = area->length - size; break;               /* Ends with the area, */
    case 2: offset = area->length - size / 2; break;           /* reaches beyond it, */
    case 3: offset = PAGE - size / 2; break;                   /* crosses a page, */
    case 4: offset = below(step, 4096); break;                 /* misaligned, */
    case 5: offset = PAGE * below(step, PAGES); break;
    case 6: offset = 4 * below(step, 4); break;                /* the same few words again and again. */
    }
    say(step, "%s+%#lx", area->name, offset);
    return area->at + offset;
}

unsigned long choose_range(struct step *step, unsigned long *length)
{
    if (chance(step, 8)) {
        *length = choose_size(step);
        say(step, ", ");
        return bad_address(step);
    }
    int slot = choose_area(step);
    const struct area *area = &program.areas[slot];
    unsigned long first = chance(step, 50) ? 0 : below(step, PAGES);
    *length = PAGE * (1 + below(step, PAGES));
    if (chance(step, 10))
        *length = area->length;
    if (chance(step, 6))
        *length = (unsigned long)choose_size(step);
    unsigned long at = area->at + first * PAGE;
    if (chance(step, 4))
        at += below(step, 4096);
    say(step, "[%s+%lu pages, %#lx bytes]", area->name, first, *length);
    return at;
}

void *scratch(struct step *step, size_t size)
{
    size = (size + 15) & ~15UL;
    if (step->scratch + size > SCRATCH)
        step->scratch = 0;
    void *at = step->self->scratch + step->scratch;
    step->scratch += size;
    return at;
}

static bool has_token(const uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at + 16 <= length; at++) {
        size_t same = 0;
        while (same < 16 && (bytes[at + same] ^ TURN) == program.token[same])
            same++;
        if (same == 16)
            return true;
    }
    return false;
}

/* Whether what only root and the checker know lies in this program's memory. */
bool leaks_secret(void)
{
    static const int readable[] = { 0, 1, 5, 7, 11, 14, 15, 16, 17 };
    static uint8_t page[PAGE];
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++) {
        const struct area *area = &program.areas[readable[i]];
        for (unsigned long offset = 0; offset < area->length && offset < PAGES * PAGE; offset += PAGE) {
            struct iovec here = { page, PAGE }, there = { (void *)(area->at + offset), PAGE };
            long got = raw(SYS_process_vm_readv, own_pid(), &here, 1, &there, 1, 0);
            if (got > 0 && has_token(page, (size_t)got))
                return true;
        }
    }
    for (int i = 0; i < THREADS; i++)
        if (has_token(program.thread[i].scratch, SCRATCH))
            return true;
    return false;
}
