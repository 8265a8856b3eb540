/*
 * x86 SDM, signal frames: the upper halves of the YMM registers survive a handler that clears them and a context
 * switch.
 */
#include "../contract.h"

static volatile int hits;

__attribute__((target("avx"))) static void clears(int number)
{
    (void)number;
    __asm__ volatile("vzeroall" : : : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                     "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    hits++;
}

__attribute__((target("avx"))) static int keeps(long number, long first, long second)
{
    unsigned char in[32], out[64] = { 0 };
    for (int i = 0; i < 32; i++)
        in[i] = (unsigned char)(i * 7 + 1);
    __asm__ volatile("vmovdqu (%[in]), %%ymm4\n vmovdqu (%[in]), %%ymm13\n syscall\n"
                     "vmovdqu %%ymm4, (%[out])\n vmovdqu %%ymm13, 32(%[out])\n vzeroupper"
                     : "+a"(number)
                     : [in] "r"(in), [out] "r"(out), "D"(first), "S"(second)
                     : "rcx", "r11", "xmm4", "xmm13", "memory");
    return memcmp(in, out, 32) == 0 && memcmp(in, out + 32, 32) == 0;
}

int main(void)
{
    if (!__builtin_cpu_supports("avx")) {
        say("this processor has no AVX");
        return 0;
    }
    catch_signal(SIGUSR1, clears, 0);
    say("kept over a handler %d", keeps(SYS_kill, getpid(), SIGUSR1));
    show("handler ran", hits);
    pid_t child = fork();
    if (child == 0) {
        int kept = 1;
        for (int i = 0; i < 200; i++)
            kept &= keeps(SYS_sched_yield, 0, 0);
        _exit(kept);
    }
    int kept = 1;
    for (int i = 0; i < 200; i++)
        kept &= keeps(SYS_sched_yield, 0, 0);
    say("kept over yields here %d and in the child %d", kept, WEXITSTATUS(reap(child)));
    return 0;
}
