/* mprotect(2): code written into memory runs once it is executable, and faults before and after. */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile int code;
static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    code = info->si_code;
    siglongjmp(back, number);
}

static void call(const char *title, char *where)
{
    int number = sigsetjmp(back, 1);
    if (number)
        say("%s: %s code %d", title, signal_name(number), code);
    else
        say("%s: returned %d", title, ((int (*)(void))(uintptr_t)where)());
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    need(sigaction(SIGSEGV, &action, NULL) == 0);
    char *area = fresh_pages(1);
    memcpy(area, "\xb8\x2a\0\0\0\xc3", 6); /* mov $42, %eax; ret */
    call("written", area);
    need(mprotect(area, PAGE, PROT_READ | PROT_EXEC) == 0);
    call("executable", area);
    need(mprotect(area, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    area[1] = 43;
    call("rewritten", area);
    need(mprotect(area, PAGE, PROT_READ) == 0);
    call("no longer", area);
    need(mprotect(area, PAGE, PROT_NONE) == 0);
    call("forbidden", area);
    return 0;
}
