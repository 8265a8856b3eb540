/* sigreturn(2): x87 and SSE registers and their control words survive a handler that uses them all. */
#include "../contract.h"

static volatile sig_atomic_t count;

static void handler(int number)
{
    (void)number;
    unsigned mxcsr = 0x1f80;
    __asm__ volatile("pxor %%xmm0, %%xmm0\n pxor %%xmm7, %%xmm7\n pxor %%xmm15, %%xmm15\n fninit\n fldz\n ldmxcsr %0"
                     :
                     : "m"(mxcsr)
                     : "xmm0", "xmm7", "xmm15", "st");
    count++;
}

int main(void)
{
    catch_signal(SIGUSR1, handler, 0);
    double in[3] = { 1.5, -2.25, 1e300 }, out[3] = { 0 };
    long double left = 0;
    unsigned mxcsr = 0x7f80, mxcsr_after = 0;
    unsigned short control = 0x0e7f, control_after = 0;
    long pid = getpid(), result = SYS_kill;
    __asm__ volatile("fninit\n fldcw %[control]\n ldmxcsr %[mxcsr]\n fldpi\n"
                     "movsd (%[in]), %%xmm0\n movsd 8(%[in]), %%xmm7\n movsd 16(%[in]), %%xmm15\n"
                     "mov %[pid], %%rdi\n mov $10, %%esi\n syscall\n"
                     "movsd %%xmm0, (%[out])\n movsd %%xmm7, 8(%[out])\n movsd %%xmm15, 16(%[out])\n"
                     "fnstcw %[after]\n stmxcsr %[mxcsr_after]\n fstpt %[left]\n fninit\n"
                     : "+a"(result), [after] "=m"(control_after), [mxcsr_after] "=m"(mxcsr_after), [left] "=m"(left)
                     : [in] "r"(in), [out] "r"(out), [pid] "r"(pid), [control] "m"(control), [mxcsr] "m"(mxcsr)
                     : "rdi", "rsi", "rcx", "r11", "xmm0", "xmm7", "xmm15", "memory");
    unsigned usual = 0x1f80;
    __asm__ volatile("ldmxcsr %0" : : "m"(usual));
    say("handler ran %d, kill returned %ld", (int)count, result);
    say("SSE kept %d", memcmp(in, out, sizeof in) == 0);
    say("x87 kept %d", left > 3.14159L && left < 3.1416L);
    say("control word %x, mxcsr %x", control_after, mxcsr_after);
    return 0;
}
