/* vdso(7): clock readings through the vDSO (or without one) and through the system call interleave in order. */
#include "../contract.h"

int main(void)
{
    int disorder = 0;
    clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };
    for (size_t c = 0; c < COUNT_OF(clocks); c++) {
        struct timespec last = { 0, 0 }, next;
        for (int i = 0; i < 2000; i++) {
            if (i % 2)
                need(clock_gettime(clocks[c], &next) == 0);
            else
                need(syscall(SYS_clock_gettime, clocks[c], &next) == 0);
            disorder += next.tv_sec < last.tv_sec || (next.tv_sec == last.tv_sec && next.tv_nsec < last.tv_nsec);
            disorder += next.tv_nsec < 0 || next.tv_nsec >= 1000000000;
            last = next;
        }
    }
    show("disorder", disorder);
    return 0;
}
