/*
 * fallocate(2), mmap(2): a program reads one page of a shared file for ever, and one of another process takes that page
 * away again and again. Each read faults at the same address from the same instruction; it still gets on, however long
 * that lasts.
 * contract: timeout=60
 */
#include "../contract.h"
#include <sys/mman.h>

static void bind_to(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0);
}

int main(void)
{
    int file = memfd_create("page", 0);
    need(file != -1 && ftruncate(file, 4096) == 0);
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    need(page != MAP_FAILED);
    pid_t reader = fork();
    need(reader != -1);
    if (reader == 0) {
        bind_to(1);
        alarm(30);
        for (;;)
            (void)*page;
    }
    bind_to(0);
    int status;
    while (waitpid(reader, &status, WNOHANG) == 0)
        need(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
    show_status("the reader", status);
    return 0;
}
