/*
 * fallocate(2) FALLOC_FL_PUNCH_HOLE, madvise(2) MADV_REMOVE: a hole reads as zeros through every mapping of the file,
 * also one that had the page; what a private mapping has copied stays. MADV_REMOVE needs a shared mapping that may
 * become writable.
 */
#include "contract.h"

static int file(void)
{
    static char page[PAGE];
    int fd = memfd_create("holes", 0);
    need(fd != -1);
    for (int i = 0; i < 8; i++) {
        memset(page, 'a' + i, PAGE);
        need(write(fd, page, PAGE) == PAGE);
    }
    return fd;
}

static void look(const char *who, const char *at)
{
    char text[9] = "";
    for (int i = 0; i < 8; i++)
        text[i] = at[i * PAGE + 100] ? at[i * PAGE + 100] : '0';
    say("%s: %s", who, text);
}

static char *map(int fd, int prot, int flags)
{
    char *at = mmap(NULL, 8 * PAGE, prot, flags, fd, 0);
    need(at != MAP_FAILED);
    return at;
}

static void blocks(int fd)
{
    struct stat meta;
    need(fstat(fd, &meta) == 0);
    say("size %ld, %ld blocks", (long)meta.st_size, (long)meta.st_blocks);
}

int main(void)
{
    int fd = file();
    char *shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), *reader = map(fd, PROT_READ, MAP_SHARED);
    char *copied = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE), *other = map(fd, PROT_READ, MAP_PRIVATE);
    copied[2 * PAGE + 100] = 'X';
    look("shared", shared), look("reader", reader), look("copied", copied), look("private", other);
    section("fallocate");
    RESULT(fallocate(fd, 3, PAGE, 2 * PAGE));
    look("shared", shared), look("reader", reader), look("copied", copied), look("private", other);
    blocks(fd);
    RESULT(fallocate(fd, 3, 3 * PAGE + 50, 100));
    look("shared", shared), look("copied", copied);
    shared[PAGE + 100] = 'n';
    look("after a store", reader);
    section("MADV_REMOVE");
    RESULT(madvise(shared + 4 * PAGE, 2 * PAGE, MADV_REMOVE));
    look("shared", shared), look("reader", reader), look("copied", copied), look("private", other);
    blocks(fd);
    RESULT(madvise(reader, PAGE, MADV_REMOVE));
    RESULT(madvise(copied, PAGE, MADV_REMOVE));
    RESULT(madvise(other, PAGE, MADV_REMOVE));
    RESULT(madvise(fresh_pages(2), PAGE, MADV_REMOVE));
    char *memory = shared_page();
    memory[5] = 'm';
    RESULT(madvise(memory, PAGE, MADV_REMOVE));
    show("shared memory", memory[5]);
    section("holes in the range");
    need(munmap(shared + 6 * PAGE, PAGE) == 0);
    RESULT(madvise(shared, 8 * PAGE, MADV_REMOVE));
    look("reader", reader);
    need(mprotect(shared + PAGE, PAGE, PROT_READ) == 0);
    fd = file();
    shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    reader = map(fd, PROT_READ, MAP_SHARED);
    need(mprotect(shared + 2 * PAGE, PAGE, PROT_READ) == 0);
    RESULT(madvise(shared, 8 * PAGE, MADV_REMOVE));
    look("reader", reader);
    need(mlock(shared + 4 * PAGE, PAGE) == 0);
    RESULT(madvise(shared + 3 * PAGE, 4 * PAGE, MADV_REMOVE));
    look("reader", reader);
    return 0;
}
