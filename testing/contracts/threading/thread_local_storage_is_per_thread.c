/* arch_prctl(2), tls: each thread has its own thread-local data and errno; FS survives switches, signals and fork. */
#include "../contract.h"
#include <asm/prctl.h>

static __thread int mine = 7;
static __thread char big[5000];
static pthread_barrier_t barrier;

static void *thread(void *number)
{
    int me = (int)(intptr_t)number, wrong = mine != 7;
    mine = me;
    memset(big, me, sizeof big);
    errno = me;
    for (int i = 0; i < 50; i++) {
        pthread_barrier_wait(&barrier);
        for (size_t at = 0; at < sizeof big; at += 100)
            wrong += big[at] != me;
        wrong += mine != me || errno != me;
    }
    return (void *)(intptr_t)wrong;
}

int main(void)
{
    pthread_t threads[4];
    long wrong = 0;
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        need(pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)(i + 10)) == 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (intptr_t)result;
    }
    show("wrong", wrong);
    show("main's own", mine);
    mine = 99;
    pid_t child = fork();
    if (child == 0)
        _exit(mine);
    show_status("child", reap(child));
    unsigned long base = 0;
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_FS, &base));
    show("FS points at itself", base == *(unsigned long *)base);
    RESULT(syscall(SYS_arch_prctl, ARCH_SET_GS, &mine));
    unsigned long gs = 0;
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_GS, &gs));
    int through = 0;
    __asm__ volatile("movl %%gs:0, %0" : "=r"(through));
    say("GS base right %d, load through it %d", gs == (unsigned long)&mine, through);
    RESULT(syscall(SYS_arch_prctl, ARCH_SET_FS, 1UL << 63));
    RESULT(syscall(SYS_arch_prctl, 0x9999, 0));
    return 0;
}
