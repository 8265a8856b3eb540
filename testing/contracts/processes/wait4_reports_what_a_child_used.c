/* wait4(2): fills the resource usage of exactly the child waited for, and getrusage sums them up. */
#include "../contract.h"
#include <sys/resource.h>

static int touches(void *pages)
{
    size_t count = *(size_t *)pages;
    volatile char *memory = fresh_pages(count);
    for (size_t i = 0; i < count; i++)
        memory[i * PAGE] = 1;
    return 0;
}

int main(void)
{
    size_t few = 10, many = 2000;
    struct rusage small, large, sum;
    int status;
    pid_t child = spawn(touches, &few);
    need(wait4(child, &status, 0, &small) == child);
    child = spawn(touches, &many);
    need(wait4(child, &status, 0, &large) == child);
    need(getrusage(RUSAGE_CHILDREN, &sum) == 0);
    check(large.ru_maxrss >= small.ru_maxrss + 4000, "more touched pages, more resident memory");
    check(large.ru_minflt > small.ru_minflt, "more touched pages, more minor faults");
    check(sum.ru_minflt >= small.ru_minflt + large.ru_minflt, "the sum holds both");
    check(sum.ru_maxrss >= large.ru_maxrss, "the largest child is remembered");
    RESULT(wait4(-1, &status, 0, &sum));
    RESULT(syscall(SYS_wait4, -1, &status, 0x80, NULL));
    return 0;
}
