/* clone(2): x87, SSE and AVX registers and MXCSR belong to a thread; switches between busy threads never mix them. */
#include "../contract.h"

static volatile int stop;

static void *worker(void *number)
{
    double mine = 1.0 + (intptr_t)number, out[4];
    unsigned mxcsr = 0x1f80 | (((uintptr_t)number & 3) << 13), after = 0;
    long wrong = 0;
    long double left;
    for (int i = 0; i < 300 && !stop; i++) {
        __asm__ volatile("ldmxcsr %[mxcsr]\n fldl %[mine]\n movsd %[mine], %%xmm3\n movsd %[mine], %%xmm12\n"
                         "mov $24, %%eax\n syscall\n"
                         "movsd %%xmm3, %[out0]\n movsd %%xmm12, %[out1]\n fstpt %[left]\n stmxcsr %[after]\n"
                         : [out0] "=m"(out[0]), [out1] "=m"(out[1]), [left] "=m"(left), [after] "=m"(after)
                         : [mine] "m"(mine), [mxcsr] "m"(mxcsr)
                         : "rax", "rcx", "r11", "xmm3", "xmm12", "memory");
        wrong += out[0] != mine || out[1] != mine || left != mine || (after & ~0x3fu) != mxcsr;
    }
    return (void *)wrong;
}

int main(void)
{
    pthread_t threads[4];
    long wrong = 0;
    for (int i = 0; i < 4; i++)
        need(pthread_create(&threads[i], NULL, worker, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (intptr_t)result;
    }
    show("mixed up", wrong);
    unsigned now;
    __asm__ volatile("stmxcsr %0" : "=m"(now));
    say("main's MXCSR %x", now & ~0x3fu);
    return 0;
}
