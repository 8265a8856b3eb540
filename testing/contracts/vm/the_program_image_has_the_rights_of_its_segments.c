/*
 * elf(5), execve(2): code is not writable, constants are not writable nor executable, data and stack are not
 * executable.
 */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }
static const char constant[64] = { (char)0xc3 };
static volatile char data[64] = { (char)0xc3 };

static const char *try_write(volatile char *where)
{
    __asm__("" : "+r"(where)); /* The compiler must not know what is behind it. */
    if (sigsetjmp(back, 1))
        return "faults";
    *where = *where;
    return "works";
}

static const char *try_call(const volatile char *where)
{
    if (sigsetjmp(back, 1))
        return "faults";
    ((void (*)(void))(uintptr_t)where)();
    return "works";
}

int main(void)
{
    volatile char stack[64] = { (char)0xc3 };
    char *heap = malloc(64);
    heap[0] = (char)0xc3;
    catch_signal(SIGSEGV, note, SA_NODEFER);
    say("writing code %s", try_write((volatile char *)(uintptr_t)main));
    say("writing constants %s", try_write((volatile char *)(uintptr_t)constant));
    say("writing data %s", try_write(data));
    say("running constants %s", try_call(constant));
    say("running data %s", try_call(data));
    say("running the stack %s", try_call(stack));
    say("running the heap %s", try_call(heap));
    return 0;
}
