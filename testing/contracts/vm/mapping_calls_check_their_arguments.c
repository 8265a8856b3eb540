/* munmap(2), mprotect(2), madvise(2), msync(2), mremap(2), brk(2): addresses, lengths and flags that are refused. */
#include "contract.h"
#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

int main(void)
{
    scratch();
    put_file("file", "text", 0600);
    int fd = open("file", O_RDWR), reads = open("file", O_RDONLY);
    char *file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *constant = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reads, 0);
    char *at = fresh_pages(16);
    munmap(at + 8 * PAGE, PAGE);
    section("munmap");
    RESULT(munmap(at + 1, PAGE));
    RESULT(munmap(at, 0));
    RESULT(munmap(at, -1UL));
    RESULT(munmap(at + 8 * PAGE, PAGE));
    RESULT(munmap((void *)(1UL << 63), PAGE));
    section("mprotect");
    RESULT(mprotect(at + 1, PAGE, PROT_READ));
    RESULT(mprotect(at, 0, PROT_READ));
    RESULT(mprotect(at, -1UL, PROT_READ));
    RESULT(mprotect(at + 8 * PAGE, PAGE, PROT_READ));
    RESULT(mprotect(at + 7 * PAGE, 2 * PAGE, PROT_READ));
    RESULT(mprotect(at, PAGE, 0x40));
    RESULT(mprotect(at, PAGE, PROT_GROWSDOWN | PROT_READ));
    RESULT(mprotect(at, PAGE, PROT_GROWSDOWN | PROT_GROWSUP | PROT_READ));
    RESULT(mprotect(constant, PAGE, PROT_WRITE));
    section("madvise");
    RESULT(madvise(at + 1, PAGE, MADV_NORMAL));
    RESULT(madvise(at, PAGE, 77));
    RESULT(madvise(at, 0, 77));
    RESULT(madvise(at, 0, MADV_DONTNEED));
    RESULT(madvise(at, -1UL, MADV_DONTNEED));
    RESULT(madvise(at + 7 * PAGE, 2 * PAGE, MADV_DONTNEED));
    RESULT(madvise(at + 8 * PAGE, PAGE, MADV_WILLNEED));
    RESULT(madvise(at, PAGE, MADV_REMOVE));
    RESULT(madvise(file, PAGE, MADV_FREE));
    RESULT(madvise(at, PAGE, MADV_FREE));
    RESULT(madvise(file, PAGE, MADV_WIPEONFORK));
    RESULT(madvise(at, PAGE, MADV_COLD));
    RESULT(madvise(at, PAGE, MADV_PAGEOUT));
    RESULT(madvise(constant, PAGE, MADV_POPULATE_WRITE));
    RESULT(madvise(at + 2 * PAGE, PAGE, MADV_POPULATE_WRITE));
    RESULT(madvise(at + 8 * PAGE, PAGE, MADV_POPULATE_READ));
    section("msync");
    RESULT(msync(at + 1, PAGE, MS_SYNC));
    RESULT(msync(at, PAGE, 8));
    RESULT(msync(at, PAGE, MS_SYNC | MS_ASYNC));
    RESULT(msync(at, PAGE, 0));
    RESULT(msync(at, 0, MS_SYNC));
    RESULT(msync(at, -1UL, MS_SYNC));
    RESULT(msync(at + 8 * PAGE, PAGE, MS_ASYNC));
    RESULT(msync(at + 7 * PAGE, 3 * PAGE, MS_SYNC));
    need(mlock(at, PAGE) == 0);
    RESULT(msync(at, PAGE, MS_INVALIDATE));
    RESULT(madvise(at, PAGE, MADV_DONTNEED));
    section("mremap");
    OUTCOME(mremap(at + 1, PAGE, PAGE, 0));
    OUTCOME(mremap(at, PAGE, 0, 0));
    OUTCOME(mremap(at, 0, PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(at, PAGE, 2 * PAGE, 8));
    OUTCOME(mremap(at, PAGE, 2 * PAGE, 0));
    OUTCOME(mremap(at, PAGE, PAGE, MREMAP_FIXED, at + PAGE));
    OUTCOME(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE + 1));
    OUTCOME(mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE));
    OUTCOME(mremap(at + 8 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(at + 7 * PAGE, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(at, PAGE, 1UL << 47, MREMAP_MAYMOVE));
    OUTCOME(mremap(file, 0, PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(at + 12 * PAGE, PAGE, 2 * PAGE, 4));
    OUTCOME(mremap(at + 12 * PAGE, PAGE, PAGE, 4 | MREMAP_MAYMOVE));
    return 0;
}
