/* mmap(2): MAP_GROWSDOWN areas grow by faults just below them, page by page, until another mapping is near. */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

static int touch(volatile char *where)
{
    if (sigsetjmp(back, 1))
        return 0;
    *where = 1;
    return 1;
}

int main(void)
{
    catch_signal(SIGSEGV, note, 0);
    char *hole = mmap(NULL, 1024 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(hole != MAP_FAILED && munmap(hole, 1024 * PAGE) == 0);
    char *top = hole + 1000 * PAGE;
    int growing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED;
    need(mmap(top, 4 * PAGE, PROT_READ | PROT_WRITE, growing, -1, 0) == top);
    say("inside %d, one below %d, two below %d", touch(top), touch(top - 1), touch(top - PAGE - 1));
    say("a jump of eight pages %d", touch(top - 10 * PAGE));
    char *wall = top - 400 * PAGE;
    need(mmap(wall, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == wall);
    int pages = 10;
    while (pages < 400 && touch(top - pages * PAGE))
        pages++;
    say("stopped short of the wall %d, at least 256 pages away %d", pages < 400, 400 - pages >= 255);
    return 0;
}
