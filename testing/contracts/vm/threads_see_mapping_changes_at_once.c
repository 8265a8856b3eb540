/* mprotect(2), munmap(2): when a call returns, no thread on any CPU can still use the old right (TLB shootdown). */
#include "../contract.h"
#include <setjmp.h>

static char *volatile area;
static volatile int stop, faults, writes_while_locked;
static volatile unsigned long locked;
static __thread sigjmp_buf back;

static void note(int number) { siglongjmp(back, number); }

static void *writer(void *unused)
{
    while (!stop)
        if (sigsetjmp(back, 1) == 0) {
            *(volatile char *)area = *(volatile char *)area + 1;
        } else {
            __atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST);
            sched_yield();
        }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    catch_signal(SIGSEGV, note, SA_NODEFER);
    area = fresh_pages(1);
    for (int i = 0; i < 2; i++)
        need(pthread_create(&threads[i], NULL, writer, NULL) == 0);
    for (int round = 0; round < 60; round++) {
        need(mprotect(area, PAGE, PROT_READ) == 0);
        char before = *(volatile char *)area;
        for (volatile int i = 0; i < 2000; i++)
            ;
        writes_while_locked += *(volatile char *)area != before;
        need(mprotect(area, PAGE, PROT_READ | PROT_WRITE) == 0);
        sched_yield();
    }
    while (!faults) {
        need(mprotect(area, PAGE, PROT_READ) == 0);
        sleep_ms(1);
        need(mprotect(area, PAGE, PROT_READ | PROT_WRITE) == 0);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    say("writers faulted %d, writes through a stale right %d", faults > 0, writes_while_locked);
    return 0;
}
