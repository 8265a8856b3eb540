/*
 * sigaction(2): SIGSEGV tells unmapped (MAPERR) from forbidden (ACCERR), SIGBUS and SIGFPE and SIGILL tell address
 * and kind.
 */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile int code;
static void *volatile address;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    code = info->si_code;
    address = info->si_addr;
    siglongjmp(back, number);
}

#define FAULT(title, action, expected)                                                                     \
    do {                                                                                                   \
        int number = sigsetjmp(back, 1);                                                                   \
        if (!number) {                                                                                     \
            action;                                                                                        \
            say("%s: nothing happened", title);                                                            \
        } else                                                                                             \
            say("%s: %s code %d address right %d", title, signal_name(number), code, address == (expected)); \
    } while (0)

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    int numbers[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        need(sigaction(numbers[i], &action, NULL) == 0);
    scratch();
    put_file("file", "x", 0600);
    volatile char *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile char *readable = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile char *past = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, open("file", O_RDONLY), 0);
    volatile char *unmapped = (char *)fresh_pages(1);
    munmap((void *)unmapped, PAGE);
    FAULT("read unmapped", (void)unmapped[5], unmapped + 5);
    FAULT("write unmapped", unmapped[6] = 1, unmapped + 6);
    FAULT("read PROT_NONE", (void)none[7], none + 7);
    FAULT("write read-only", readable[8] = 1, readable + 8);
    FAULT("read past the end of a file", (void)past[PAGE + 9], past + PAGE + 9);
    FAULT("null", *(volatile int *)bad_pointer() = 1, (void *)8);
    FAULT("non-canonical", *(volatile char *)0x8000000000000000UL = 1, NULL);
    FAULT("execute data", ((void (*)(void))(uintptr_t)readable)(), readable);
    FAULT("divide by zero", __asm__ volatile("div %0" : : "r"(0), "a"(1), "d"(0)), address);
    FAULT("illegal instruction", __asm__ volatile("ud2"), address);
    FAULT("breakpoint", __asm__ volatile("int3"), address);
    FAULT("privileged instruction", __asm__ volatile("hlt"), NULL);
    return 0;
}
