/*
 * mincore(2), mlock(2): untouched anonymous pages are not resident, touched and locked ones are; unmapped ranges
 * are ENOMEM.
 */
#include "../contract.h"

static void resident(const char *title, char *area)
{
    unsigned char state[4];
    need(mincore(area, 4 * PAGE, state) == 0);
    say("%s: %d %d %d %d", title, state[0] & 1, state[1] & 1, state[2] & 1, state[3] & 1);
}

int main(void)
{
    unsigned char state[8];
    char *area = fresh_pages(4);
    need(madvise(area, 4 * PAGE, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    resident("fresh", area);
    area[PAGE] = 1;
    resident("one written", area);
    RESULT(mlock(area + 2 * PAGE, 1));
    resident("one locked", area);
    RESULT(munlock(area, 4 * PAGE));
    RESULT(mincore(area + 1, PAGE, state));
    need(munmap(area + 3 * PAGE, PAGE) == 0);
    RESULT(mincore(area, 4 * PAGE, state));
    RESULT(mlock(area, 4 * PAGE));
    RESULT(mincore(area, PAGE, BAD_POINTER));
    char *populated = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    resident("MAP_POPULATE", populated);
    RESULT(mlockall(0));
    RESULT(munlockall());
    return 0;
}
