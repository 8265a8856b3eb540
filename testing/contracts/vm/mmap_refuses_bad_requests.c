/*
 * mmap(2): zero length, no sharing kind, misaligned offsets are EINVAL; descriptors must allow the access;
 * oversize is ENOMEM.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "x", 0600);
    int in = open("file", O_RDONLY), out = open("file", O_WRONLY), ends[2], directory = open(".", O_RDONLY);
    need(pipe(ends) == 0);
    OUTCOME(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, in, 7));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, in, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, in, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_WRITE, MAP_PRIVATE, out, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, ends[0], 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, directory, 0));
    OUTCOME(mmap(NULL, 1UL << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, -1UL, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap((void *)0x1001, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    OUTCOME(mmap((void *)(1UL << 62), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    OUTCOME(munmap((void *)0x1001, PAGE));
    OUTCOME(munmap((void *)0x100000, 0));
    OUTCOME(munmap((void *)0x10000000, PAGE));
    OUTCOME(munmap((void *)(1UL << 62), PAGE));
    return 0;
}
