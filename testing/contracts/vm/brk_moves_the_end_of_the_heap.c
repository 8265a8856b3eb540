/*
 * brk(2): the raw call returns the new end or, when it cannot, the old one; memory given back reads as zeros when
 * it returns.
 */
#include "../contract.h"

static char *brk_(void *where) { return (char *)syscall(SYS_brk, where); }

int main(void)
{
    char *start = brk_(0);
    show("asking twice gives the same", start == brk_(0));
    char *end = brk_(start + 3 * PAGE + 100);
    show("grown exactly", end == start + 3 * PAGE + 100);
    int bits = 0;
    for (char *at = start; at < end; at++)
        bits |= *at;
    show("bits set", bits);
    memset(start, 'x', end - start);
    show("shrunk", brk_(start + 100) == start + 100);
    show("kept", start[50]);
    show("grown again", brk_(end) == end);
    char *page_up = (char *)(((uintptr_t)start + 100 + PAGE - 1) & ~(PAGE - 1));
    show("fresh again", page_up[0]);
    show("below the start changes nothing", brk_(start - 1) == end);
    show("absurd changes nothing", brk_((void *)(1UL << 60)) == end);
    show("back to the start", brk_(start) == start);
    return 0;
}
