/*
 * munmap(2): a thread reading while another unmaps and maps again sees old content, a fault, or zeros, never
 * foreign data.
 */
#include "../contract.h"
#include <setjmp.h>

static char *volatile area;
static volatile int stop, foreign, reads;
static __thread sigjmp_buf back;

static void note(int number) { siglongjmp(back, number); }

static void *reader(void *unused)
{
    while (!stop)
        if (sigsetjmp(back, 1) == 0) {
            char value = *(volatile char *)area;
            if (value != 0 && value != 'a')
                foreign++;
            reads++;
        }
    return unused;
}

int main(void)
{
    pthread_t thread;
    catch_signal(SIGSEGV, note, SA_NODEFER);
    area = fresh_pages(1);
    need(pthread_create(&thread, NULL, reader, NULL) == 0);
    for (int round = 0; round < 100; round++) {
        memset(area, 'a', PAGE);
        need(munmap(area, PAGE) == 0);
        char *other = fresh_pages(16);
        if (area < other || area >= other + 16 * PAGE)
            memset(other, 'f', 16 * PAGE);
        need(mmap(area, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
        need(area >= other && area < other + 16 * PAGE ? 1 : munmap(other, 16 * PAGE) == 0);
    }
    while (!reads)
        sched_yield();
    stop = 1;
    pthread_join(thread, NULL);
    say("foreign values read %d", foreign);
    return 0;
}
