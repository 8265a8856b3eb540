/*
 * mremap(2): shrinking unmaps the tail, growing keeps the content and zeros the rest, moving leaves nothing
 * behind.
 */
#include "../contract.h"

static int mapped(char *where)
{
    unsigned char state;
    return mincore(where, PAGE, &state) == 0;
}

int main(void)
{
    char *area = fresh_pages(8);
    for (int i = 0; i < 8; i++)
        area[i * PAGE] = (char)('0' + i);
    show("shrunk in place", mremap(area, 8 * PAGE, 4 * PAGE, 0) == area);
    say("third page %d fifth page %d", mapped(area + 3 * PAGE), mapped(area + 4 * PAGE));
    show("grown in place", mremap(area, 4 * PAGE, 6 * PAGE, 0) == area);
    say("content %c, new page %d", area[3 * PAGE], area[4 * PAGE]);
    need(mmap(area + 6 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    OUTCOME(mremap(area, 6 * PAGE, 16 * PAGE, 0));
    char *moved = mremap(area, 6 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
    need(moved != MAP_FAILED);
    say("moved %d, old gone %d, content %c, tail %d", moved != area, !mapped(area), moved[2 * PAGE], moved[15 * PAGE]);
    char *target = fresh_pages(4);
    target[0] = 't';
    show("fixed", mremap(moved, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    say("content %c %c", target[0], target[PAGE]);
    OUTCOME(mremap(target + 1, PAGE, PAGE, 0));
    OUTCOME(mremap(target, PAGE, 0, 0));
    OUTCOME(mremap(target, PAGE, PAGE, MREMAP_FIXED, area));
    OUTCOME(mremap(target, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + PAGE));
    OUTCOME(mremap((void *)0x10000000, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(target, PAGE, PAGE, 0x80));
    return 0;
}
