/*
 * memfd_create(2) MFD_HUGETLB, fcntl(2) "File Sealing", Documentation/admin-guide/mm/hugetlbpage.rst: a file of pages
 * of the pool is cut and mapped 2 MiB at a time, is read but not written, has what is mapped shared reserved, and is
 * sealed as others are.
 */
#include "pool.h"
#include <sys/statfs.h>

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4U
#endif
#define MFD_2MB (21U << 26)
#define ZERO_RANGE 0x10 /* FALLOC_FL_ZERO_RANGE */
#define ALL (PROT_READ | PROT_WRITE)

static void resize(const char *count)
{
    int fd = open("/proc/sys/vm/nr_hugepages", O_WRONLY);
    need(fd != -1 && write(fd, count, strlen(count)) == (ssize_t)strlen(count) && close(fd) == 0);
}

static int make(unsigned flags)
{
    int fd = memfd_create("huge", MFD_HUGETLB | flags);
    need(fd != -1);
    return fd;
}

static void sizes(const char *when, int fd)
{
    struct stat meta;
    need(fstat(fd, &meta) == 0);
    say("%s: size %ld, blocks %ld", when, (long)meta.st_size, (long)meta.st_blocks);
}

static char *map_at(int fd, off_t offset, size_t length, int prot, int flags)
{
    return mmap(NULL, length, prot, flags, fd, offset);
}

static int touches(void *at)
{
    ((volatile char *)at)[0] += 1;
    return 0;
}

static void made(void)
{
    section("made");
    int fd = make(MFD_CLOEXEC);
    struct stat meta;
    struct statfs fs;
    char link[64] = {0}, path[64], byte = 'x', bytes[4096];
    need(fstat(fd, &meta) == 0 && fstatfs(fd, &fs) == 0);
    say("mode %o, links %d, size %ld, block %ld", meta.st_mode, (int)meta.st_nlink, (long)meta.st_size,
        (long)meta.st_blksize);
    say("type %lx, block %ld, blocks %ld, name %ld", (unsigned long)fs.f_type, (long)fs.f_bsize, (long)fs.f_blocks,
        (long)fs.f_namelen);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    need(readlink(path, link, sizeof link - 1) > 0);
    show_text("link", link);
    RESULT(fcntl(fd, F_GET_SEALS));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    RESULT(write(fd, &byte, 1));
    RESULT(pwrite(fd, &byte, 1, 0));
    RESULT(read(fd, bytes, sizeof bytes));
    RESULT(ftruncate(fd, PAGE));
    RESULT(ftruncate(fd, HUGE));
    sizes("of one page", fd);
    RESULT(read(fd, bytes, sizeof bytes));
    RESULT(lseek(fd, 0, SEEK_END));
    RESULT(lseek(fd, 0, SEEK_HOLE));
    RESULT(lseek(fd, PAGE, SEEK_DATA));
    pool("nothing mapped");
    close(fd);
    OUTCOME(memfd_create("x", MFD_HUGETLB | 0x40));
    OUTCOME(memfd_create("x", MFD_2MB));
    OUTCOME(memfd_create("x", MFD_HUGETLB | 22U << 26));
    int named = memfd_create("x", MFD_HUGETLB | MFD_2MB);
    show("its size by name", named != -1);
    close(named);
}

static void mapped(void)
{
    section("mapped");
    int fd = make(0);
    need(ftruncate(fd, 3 * HUGE) == 0);
    check(map_at(fd, PAGE, HUGE, ALL, MAP_SHARED) == MAP_FAILED && errno == EINVAL, "an offset between: EINVAL");
    check(map_at(fd, 0, 7 * HUGE, ALL, MAP_SHARED) == MAP_FAILED && errno == ENOMEM, "more than there are: ENOMEM");
    sizes("after that", fd);
    pool("after that");
    char *at = map_at(fd, 0, PAGE, ALL, MAP_SHARED);
    need(at != MAP_FAILED && (uintptr_t)at % HUGE == 0);
    pool("the first page mapped by its first bytes");
    char *all = map_at(fd, 0, 3 * HUGE, ALL, MAP_SHARED | MAP_HUGETLB);
    need(all != MAP_FAILED);
    pool("all of it mapped too");
    at[HUGE - 1] = 5;
    check(all[HUGE - 1] == 5, "both show one page");
    all[HUGE] = 6;
    sizes("two touched", fd);
    pool("two touched");
    char bytes[3] = {9, 9, 9};
    need(pread(fd, bytes, 3, HUGE - 1) == 3 && bytes[0] == 5 && bytes[1] == 6 && bytes[2] == 0);
    need(pread(fd, bytes, 3, 2 * HUGE) == 3 && bytes[0] == 0);
    pool("read");
    RESULT(munmap(at, PAGE));
    RESULT(mprotect(at, PAGE, PROT_READ));
    RESULT(munmap(at, HUGE));
    RESULT(munmap(all, 3 * HUGE));
    pool("unmapped, the file has them");
    char *again = map_at(fd, 0, HUGE, ALL, MAP_SHARED);
    need(again != MAP_FAILED);
    show_status("a child of one that maps it again", in_child(touches, again));
    RESULT(munmap(again, HUGE));
    need(pread(fd, bytes, 1, 0) == 1);
    show("it wrote", bytes[0]);
    char *longer = map_at(fd, 2 * HUGE, 2 * HUGE, PROT_READ, MAP_SHARED);
    need(longer != MAP_FAILED);
    sizes("mapped to read behind its end", fd);
    show_status("a touch behind the end", in_child(touches, longer + HUGE) == 0);
    RESULT(munmap(longer, 2 * HUGE));
    longer = map_at(fd, 2 * HUGE, 2 * HUGE, ALL, MAP_SHARED);
    need(longer != MAP_FAILED);
    sizes("mapped to write behind its end", fd);
    longer[HUGE] = 1;
    RESULT(munmap(longer, 2 * HUGE));
    pool("four pages long");
    close(fd);
    pool("closed");
}

static int reads(void *at)
{
    return ((volatile char *)at)[0];
}

static void cut(void)
{
    section("cut");
    int fd = make(0);
    need(ftruncate(fd, 3 * HUGE) == 0);
    char *at = map_at(fd, 0, 3 * HUGE, ALL, MAP_SHARED);
    need(at != MAP_FAILED);
    at[0] = 1;
    at[HUGE] = 2;
    at[HUGE + PAGE] = 3;
    pool("two of three touched");
    RESULT(ftruncate(fd, HUGE));
    pool("one left");
    show_status("the first", in_child(reads, at));
    show_status("the second", in_child(reads, at + HUGE));
    RESULT(ftruncate(fd, 3 * HUGE));
    check(at[HUGE] == 0, "zeros again");
    pool("three again");
    at[HUGE] = 2;
    at[HUGE + PAGE] = 3;
    RESULT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, HUGE, HUGE));
    pool("a hole");
    check(at[HUGE] == 0 && at[0] == 1, "zeros in the hole");
    at[HUGE + PAGE] = 3;
    RESULT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, HUGE + PAGE, PAGE));
    pool("a hole of a small page");
    show("what it shows", at[HUGE + PAGE]);
    RESULT(madvise(at, HUGE, MADV_REMOVE));
    pool("a hole by madvise");
    check(at[0] == 0, "zeros in it");
    RESULT(fallocate(fd, 0, 2 * HUGE, HUGE + PAGE));
    sizes("allocated", fd);
    pool("allocated");
    RESULT(fallocate(fd, FALLOC_FL_KEEP_SIZE, 4 * HUGE, 3 * HUGE));
    sizes("more than there are", fd);
    RESULT(fallocate(fd, ZERO_RANGE, 0, HUGE));
    RESULT(munmap(at, 3 * HUGE));
    close(fd);
    pool("closed");
}

static void sealed(void)
{
    section("sealed");
    int fd = make(MFD_ALLOW_SEALING);
    need(ftruncate(fd, 2 * HUGE) == 0);
    RESULT(fcntl(fd, F_GET_SEALS));
    char *at = map_at(fd, 0, HUGE, ALL, MAP_SHARED);
    need(at != MAP_FAILED);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    RESULT(ftruncate(fd, HUGE));
    RESULT(ftruncate(fd, 3 * HUGE));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    RESULT(ftruncate(fd, 4 * HUGE));
    RESULT(fallocate(fd, 0, 0, 4 * HUGE));
    RESULT(fallocate(fd, 0, 0, HUGE));
    RESULT(munmap(at, HUGE));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    RESULT(fcntl(fd, F_GET_SEALS));
    RESULT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HUGE));
    check(map_at(fd, 0, HUGE, ALL, MAP_SHARED) == MAP_FAILED && errno == EPERM, "mapped to write: EPERM");
    at = map_at(fd, 0, HUGE, PROT_READ, MAP_SHARED);
    check(at != MAP_FAILED, "mapped to read");
    RESULT(mprotect(at, HUGE, ALL));
    RESULT(munmap(at, HUGE));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    close(fd);
    pool("closed");
}

static void listed(void)
{
    section("listed");
    int fd = make(0);
    need(ftruncate(fd, 2 * HUGE) == 0);
    char *at = map_at(fd, HUGE, HUGE, ALL, MAP_SHARED), *private = mmap(NULL, HUGE, ALL, MAP_PRIVATE | MAP_ANONYMOUS |
        MAP_HUGETLB, -1, 0), line[256], start[2][32];
    need(at != MAP_FAILED && private != MAP_FAILED);
    at[0] = private[0] = 1;
    snprintf(start[0], sizeof start[0], "%lx-", (unsigned long)at);
    snprintf(start[1], sizeof start[1], "%lx-", (unsigned long)private);
    FILE *file = fopen("/proc/self/smaps", "r");
    need(file != NULL);
    int inside = 0;
    static const char *const names[] = {"Size:", "KernelPageSize:", "Rss:", "AnonHugePages:"};
    while (fgets(line, sizeof line, file)) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (strchr(line, '-') && strchr(line, ':') && !strchr(line, 'B')) {
            inside = strncmp(line, start[0], strlen(start[0])) == 0 || strncmp(line, start[1], strlen(start[1])) == 0;
            if (inside) {
                char rights[8], offset[16];
                need(sscanf(line, "%*s %7s %15s", rights, offset) == 2 && strchr(line, '/'));
                say("%s %s %s", rights, offset, strchr(line, '/'));
            }
        }
        for (unsigned name = 0; inside && name < sizeof names / sizeof *names; name++)
            if (strncmp(line, names[name], strlen(names[name])) == 0)
                say("%s %ld", names[name], atol(line + strlen(names[name])));
    }
    fclose(file);
    RESULT(munmap(at, HUGE));
    RESULT(munmap(private, HUGE));
    close(fd);
}

int main(void)
{
    resize("6");
    pool("six");
    made();
    mapped();
    cut();
    sealed();
    listed();
    pool("afterwards");
    resize("0");
    pool("none");
    return 0;
}
