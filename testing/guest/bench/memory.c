/* Mapping, touching and protecting memory. */
#include "bench.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { PAGE = 4096 };

static char *mapped(size_t size) {
    char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) bench_fail("mmap");
    return memory;
}

/*
 * A page without access where the kernel places mappings next: what is mapped after it has no neighbour to merge with,
 * so the figure is that of the call and not of joining and splitting areas that happen to lie side by side.
 */
static char *fence(void) {
    char *page = mmap(0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) bench_fail("mmap");
    return page;
}

/* One mapping, every page of it touched: the figure is per page, the mapping itself included. */
static void run_mmap_fault(unsigned long iterations, Span *span) {
    span_open(span);
    char *memory = mapped(iterations * PAGE);
    for (unsigned long i = 0; i < iterations; i++) ((volatile char *)memory)[i * PAGE] = 1;
    span_close(span);
    munmap(memory, iterations * PAGE);
}

/* The same in pages of 4 KiB alone. */
static void run_mmap_fault_4k(unsigned long iterations, Span *span) {
    need(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), "prctl");
    run_mmap_fault(iterations, span);
    need(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), "prctl");
}

/* Memory that has a descriptor: its first pages, or those that an earlier mapping made, through one shared mapping. */
static void shared(unsigned long pages, Span *span, int is_there, int writes) {
    int fd = memfd_create("bench", MFD_CLOEXEC);
    need(fd, "memfd_create");
    need(ftruncate(fd, pages * PAGE), "ftruncate");
    for (int turn = !is_there; turn < 2; turn++) {
        if (turn) span_open(span);
        volatile char *memory = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED) bench_fail("mmap");
        for (unsigned long page = 0; page < pages; page++) {
            if (writes || !turn) memory[page * PAGE] = 1;
            else (void)memory[page * PAGE];
        }
        if (turn) span_close(span);
        munmap((void *)memory, pages * PAGE);
    }
    close(fd);
}

static void run_memfd_fault(unsigned long iterations, Span *span) { shared(iterations, span, 0, 1); }
static void run_memfd_read(unsigned long iterations, Span *span) { shared(iterations, span, 1, 0); }
static void run_memfd_write(unsigned long iterations, Span *span) { shared(iterations, span, 1, 1); }

static void run_mmap_munmap(unsigned long iterations, Span *span) {
    char *apart = fence();
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) munmap(mapped(PAGE), PAGE);
    span_close(span);
    munmap(apart, PAGE);
}

static void run_mprotect(unsigned long iterations, Span *span) {
    char *apart = fence(), *page = mapped(PAGE);
    *(volatile char *)page = 1;
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        mprotect(page, PAGE, PROT_READ);
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    }
    span_close(span);
    munmap(page, PAGE);
    munmap(apart, PAGE);
}

/* musl refuses brk without a call; the call itself is what is measured: up one page and back. */
static void run_brk(unsigned long iterations, Span *span) {
    long end = syscall(SYS_brk, 0);
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) {
        syscall(SYS_brk, end + PAGE);
        syscall(SYS_brk, end);
    }
    span_close(span);
}

const Bench bench_memory[] = {
    {"mmap_fault", 4096, run_mmap_fault},
    {"mmap_fault_4k", 4096, run_mmap_fault_4k},
    {"memfd_fault", 4096, run_memfd_fault},
    {"memfd_read", 4096, run_memfd_read},
    {"memfd_write", 4096, run_memfd_write},
    {"mmap_munmap", 100000, run_mmap_munmap},
    {"mprotect", 200000, run_mprotect},
    {"brk", 500000, run_brk},
    {0, 0, 0},
};
