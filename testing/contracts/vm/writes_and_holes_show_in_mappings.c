/*
 * mmap(2), MAP_SHARED; fallocate(2): a mapping and the file are one: a page that a write makes while its buffer is
 * the mapping of that very page, and a page that a hole takes away, are the same on both sides.
 */
#include "../contract.h"

static int same(int fd, const char *map, size_t length)
{
    static char text[4 * PAGE];
    need(pread(fd, text, length, 0) == (ssize_t)length);
    return memcmp(text, map, length) == 0;
}

int main(void)
{
    int fd = memfd_create("pages", 0);
    need(fd != -1 && ftruncate(fd, 4 * PAGE) == 0);
    char *map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *copy = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    need(map != MAP_FAILED && copy != MAP_FAILED);
    section("a write from the page it makes");
    RESULT(pwrite(fd, map, PAGE, 0));
    map[1] = 'm';
    check(same(fd, map, PAGE), "a store shows in the file");
    RESULT(pwrite(fd, "file", 4, 8));
    check(same(fd, map, PAGE) && !memcmp(map + 8, "file", 4), "a write shows in the mapping");
    RESULT(pwrite(fd, map + PAGE, 2 * PAGE, PAGE));
    map[PAGE + 5] = map[2 * PAGE + 5] = 'p';
    check(same(fd, map, 4 * PAGE), "over two pages too");
    section("a hole");
    memset(map, 'x', 4 * PAGE);
    check(copy[PAGE] == 'x', "a private mapping shows what was never written through it");
    RESULT(fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, PAGE, PAGE));
    check(map[PAGE] == 0 && map[2 * PAGE - 1] == 0 && map[0] == 'x' && map[2 * PAGE] == 'x', "zeros in the mapping");
    check(copy[PAGE] == 0, "and in a private one");
    check(same(fd, map, 4 * PAGE), "as in the file");
    map[PAGE] = 'n';
    check(same(fd, map, 4 * PAGE), "stores go on to show");
    RESULT(fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 100, 3 * PAGE));
    int right = map[99] == 'x' && !map[100] && !map[2 * PAGE] && map[3 * PAGE + 100] == 'x';
    check(same(fd, map, 4 * PAGE) && right, "a hole at odd bytes");
    return 0;
}
