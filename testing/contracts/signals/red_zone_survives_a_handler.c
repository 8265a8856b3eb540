/*
 * x86-64 psABI 3.2.2: the 128 bytes below the stack pointer belong to the interrupted function; a signal frame
 * skips them.
 */
#include "../contract.h"

static volatile sig_atomic_t count;
static void handler(int number)
{
    volatile char frame[512];
    memset((char *)frame, number, sizeof frame);
    count++;
}

int main(void)
{
    catch_signal(SIGUSR1, handler, 0);
    long pid = getpid(), result = SYS_kill, near = 0, far = 0;
    __asm__ volatile("movq $0x1111, -8(%%rsp)\n movq $0x2222, -128(%%rsp)\n"
                     "syscall\n"
                     "movq -8(%%rsp), %[near]\n movq -128(%%rsp), %[far]\n"
                     : "+a"(result), [near] "=&r"(near), [far] "=&r"(far)
                     : "D"(pid), "S"((long)SIGUSR1)
                     : "rcx", "r11", "memory");
    say("handler ran %d, near %lx, far %lx", (int)count, near, far);
    return 0;
}
