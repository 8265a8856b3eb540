/*
 * mprotect(2): pages become unwritable or unreadable at once, others keep their rights, holes are ENOMEM,
 * misalignment EINVAL.
 */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

static char access_of(char *where)
{
    if (sigsetjmp(back, 1))
        return '-';
    volatile char value = *(volatile char *)where;
    if (sigsetjmp(back, 1))
        return 'r';
    *(volatile char *)where = value;
    return 'w';
}

static void show_access(const char *title, char *area)
{
    char line[9] = { 0 };
    for (int i = 0; i < 8; i++)
        line[i] = access_of(area + i * PAGE);
    say("%s: %s", title, line);
}

int main(void)
{
    catch_signal(SIGSEGV, note, 0);
    char *area = fresh_pages(8);
    memset(area, 'x', 4 * PAGE);
    show_access("fresh", area);
    RESULT(mprotect(area + PAGE, 2 * PAGE, PROT_READ));
    RESULT(mprotect(area + 5 * PAGE, PAGE, PROT_NONE));
    show_access("changed", area);
    RESULT(mprotect(area + 2 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE));
    show_access("overlapping", area);
    say("content kept %c %c", area[2 * PAGE], area[PAGE]);
    RESULT(syscall(SYS_mprotect, area + 1, PAGE, PROT_READ));
    RESULT(mprotect(area, 0, PROT_READ));
    RESULT(mprotect(area, PAGE, 0x40));
    need(munmap(area + 4 * PAGE, PAGE) == 0);
    RESULT(mprotect(area, 8 * PAGE, PROT_READ));
    area[6 * PAGE] = 1;
    section("pages before the hole changed, pages after did not");
    show_access("after", area);
    scratch();
    put_file("file", "x", 0600);
    char *file = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, open("file", O_RDONLY), 0);
    RESULT(mprotect(file, PAGE, PROT_READ | PROT_WRITE));
    return 0;
}
