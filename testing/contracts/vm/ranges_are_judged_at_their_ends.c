/*
 * mmap(2) and its kin: what calls on ranges answer where a range begins before, reaches over or ends behind what is
 * mapped, has no length, or wraps around the address space; and how far they came.
 */
#include "../contract.h"
#include <sys/uio.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* Pages 0 and 1 are mapped, 2 is a hole, 3 is mapped for reading only, 4 is a hole, 5 cannot be accessed. */
static char *base;

static void lay_out(void)
{
    static char *last;
    if (last)
        munmap(last, 8 * PAGE);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (last ? MAP_FIXED : 0);
    base = last = mmap(last, 8 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    need(base != MAP_FAILED);
    memset(base, 'a', 6 * PAGE);
    need(munmap(base + 2 * PAGE, PAGE) == 0 && munmap(base + 4 * PAGE, PAGE) == 0);
    need(munmap(base + 6 * PAGE, 2 * PAGE) == 0);
    need(mprotect(base + 3 * PAGE, PAGE, PROT_READ) == 0 && mprotect(base + 5 * PAGE, PAGE, PROT_NONE) == 0);
}

struct range { const char *name; long from; unsigned long length; };
static const struct range ranges[] = {
    { "whole", 0, 2 * PAGE }, { "none", 0, 0 }, { "none of a hole", 2 * PAGE, 0 }, { "a part of a page", 0, 1 },
    { "into a hole", PAGE, 2 * PAGE }, { "from a hole", 2 * PAGE, 2 * PAGE }, { "over a hole", PAGE, 3 * PAGE },
    { "a hole", 2 * PAGE, PAGE }, { "read-only", 3 * PAGE, PAGE }, { "no access", 5 * PAGE, PAGE },
    { "unaligned", 1, PAGE }, { "unaligned in a hole", 2 * PAGE + 1, PAGE }, { "wraps", 0, -PAGE },
    { "all but a byte", 0, -1UL },
};

#define EACH(call) do { \
        section(#call); \
        for (size_t i = 0; i < COUNT_OF(ranges); i++) { \
            char *at; \
            unsigned long length = ranges[i].length; \
            lay_out(); \
            at = base + ranges[i].from; \
            long value = (long)(call); \
            say("%s: %s", ranges[i].name, value == -1 ? errno_name(errno) : "ok"); \
        } \
    } while (0)

static long present(char *at, unsigned long length)
{
    unsigned char *pages = malloc(1 << 16);
    return syscall(SYS_mincore, at, length, length > (1UL << 28) ? NULL : pages);
}

static void remote(const char *name, size_t from, size_t length, int writes, unsigned long flags)
{
    static char here[8 * PAGE];
    struct iovec own[2] = { { here, length / 2 }, { here + length / 2, length - length / 2 } };
    struct iovec theirs = { base + from, length };
    long moved = writes ? process_vm_writev(getpid(), own, 2, &theirs, 1, flags)
                        : process_vm_readv(getpid(), own, 2, &theirs, 1, flags);
    say("%s, %s: %ld %s", name, writes ? "write" : "read", moved, moved == -1 ? errno_name(errno) : "");
}

int main(void)
{
    EACH(madvise(at, length, MADV_NORMAL));
    EACH(madvise(at, length, MADV_DONTNEED));
    EACH(madvise(at, length, MADV_WILLNEED));
    EACH(madvise(at, length, MADV_FREE));
    EACH(madvise(at, length, MADV_REMOVE));
    EACH(madvise(at, length, MADV_DONTFORK));
    EACH(madvise(at, length, MADV_COLD));
    EACH(madvise(at, length, MADV_PAGEOUT));
    EACH(madvise(at, length, MADV_POPULATE_READ));
    EACH(madvise(at, length, MADV_POPULATE_WRITE));
    EACH(madvise(at, length, 1000));
    EACH(mlock(at, length));
    EACH(syscall(SYS_mlock2, at, length, 1));
    EACH(syscall(SYS_mlock2, at, length, 2));
    EACH(munlock(at, length));
    EACH(msync(at, length, MS_SYNC));
    EACH(msync(at, length, MS_ASYNC | MS_INVALIDATE));
    EACH(msync(at, length, MS_ASYNC | MS_SYNC));
    EACH(mprotect(at, length, PROT_READ));
    EACH(syscall(SYS_mprotect, at, length, PROT_READ | PROT_GROWSDOWN));
    EACH(munmap(at, length));
    EACH(present(at, length));
    EACH(syscall(SYS_mremap, at, length, PAGE, 0, 0));
    EACH(syscall(SYS_mremap, at, length, 4 * PAGE, MREMAP_MAYMOVE, 0));
    EACH(syscall(SYS_mremap, at, length, 0, MREMAP_MAYMOVE, 0));
    EACH(syscall(SYS_mremap, at, length, PAGE, MREMAP_FIXED, base + 6 * PAGE));
    EACH(syscall(SYS_mremap, at, length, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, base + 6 * PAGE + 1));
    EACH(syscall(SYS_mremap, at, length, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, base));
    EACH(syscall(SYS_mremap, at, PAGE, length, MREMAP_MAYMOVE, 0));
    section("process_vm_readv and process_vm_writev");
    for (int writes = 0; writes < 2; writes++) {
        lay_out();
        remote("whole", 0, 2 * PAGE, writes, 0);
        remote("into a hole", PAGE + 100, 2 * PAGE, writes, 0);
        remote("a hole", 2 * PAGE, PAGE, writes, 0);
        remote("read-only", 3 * PAGE, PAGE, writes, 0);
        remote("no access", 5 * PAGE, PAGE, writes, 0);
        remote("nothing", 0, 0, writes, 0);
        remote("flags", 0, PAGE, writes, 1);
    }
    struct iovec own = { base, 16 }, far = { (void *)-16L, 32 }, long_one = { base, -1UL };
    RESULT(process_vm_readv(getpid(), &own, 1, &far, 1, 0));
    RESULT(process_vm_readv(getpid(), &own, 1, &long_one, 1, 0));
    RESULT(process_vm_readv(getpid(), &long_one, 1, &own, 1, 0));
    RESULT(process_vm_readv(getpid(), &own, 1, BAD_POINTER, 1, 0));
    RESULT(process_vm_readv(getpid(), BAD_POINTER, 1, &own, 1, 0));
    RESULT(process_vm_readv(getpid(), &own, 1, &own, 1025, 0));
    RESULT(process_vm_readv(getpid(), &own, 0, &own, 1, 0));
    RESULT(process_vm_readv(getpid(), &own, 1, &own, 0, 0));
    RESULT(process_vm_readv(-1, &own, 1, &own, 1, 0));
    return 0;
}
