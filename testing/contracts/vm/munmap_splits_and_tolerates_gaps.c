/* munmap(2): a hole in the middle leaves both sides; gaps in the range are no error; touching the hole is SIGSEGV. */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

static void probe(char *area, const char *title)
{
    char map[16] = { 0 };
    for (volatile int i = 0; i < 10; i++)
        map[i] = sigsetjmp(back, 1) ? '-' : (char)*(volatile char *)(area + i * PAGE);
    say("%s: %s", title, map);
}

int main(void)
{
    char *area = fresh_pages(10);
    catch_signal(SIGSEGV, note, 0);
    for (int i = 0; i < 10; i++)
        area[i * PAGE] = (char)('0' + i);
    probe(area, "whole");
    RESULT(munmap(area + 3 * PAGE, 2 * PAGE));
    probe(area, "hole");
    RESULT(munmap(area + 7 * PAGE, 1));
    probe(area, "one byte takes its page");
    RESULT(munmap(area + 2 * PAGE, 6 * PAGE));
    probe(area, "over gaps");
    RESULT(munmap(area, PAGE));
    probe(area, "front");
    RESULT(munmap(area, 10 * PAGE));
    probe(area, "all");
    return 0;
}
