/*
 * mmap(2): MAP_FIXED puts the mapping there, replacing what it covers; MAP_FIXED_NOREPLACE fails with EEXIST; a
 * hint is a hint.
 */
#include "../contract.h"

#define NOREPLACE 0x100000

static char *map_at(char *where, size_t pages, int flags)
{
    return mmap(where, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

int main(void)
{
    char *area = fresh_pages(8);
    memset(area, 'a', 8 * PAGE);
    show("fixed went there", map_at(area + 2 * PAGE, 3, MAP_FIXED) == area + 2 * PAGE);
    for (int i = 0; i < 8; i++)
        say("page %d starts with %d", i, area[i * PAGE]);
    OUTCOME(map_at(area + PAGE, 1, NOREPLACE));
    OUTCOME(map_at(area + 7 * PAGE, 3, NOREPLACE));
    need(munmap(area + 4 * PAGE, 2 * PAGE) == 0);
    show("noreplace into a gap", map_at(area + 4 * PAGE, 1, NOREPLACE) == area + 4 * PAGE);
    show("a free hint is taken", map_at(area + 5 * PAGE, 1, 0) == area + 5 * PAGE);
    char *other = map_at(area, 1, 0);
    show("a taken hint is not", other != area && other != MAP_FAILED);
    show("kept", area[0]);
    return 0;
}
