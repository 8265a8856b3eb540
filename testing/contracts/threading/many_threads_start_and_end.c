/* pthread_create(3): hundreds of threads in turns start, run and are joined, and their stacks are given back. */
#include "../contract.h"

static int total;

static void *thread(void *number)
{
    volatile char stack[20000];
    stack[0] = stack[sizeof stack - 1] = 1;
    __atomic_add_fetch(&total, stack[0], __ATOMIC_SEQ_CST);
    return number;
}

static long mapped_kib(void)
{
    char text[2048];
    get_file("/proc/self/status", text, sizeof text);
    char *line = strstr(text, "VmSize:");
    return line ? atol(line + 7) : -1;
}

int main(void)
{
    pthread_t threads[20];
    int wrong = 0;
    long before = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 20; i++)
            need(pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)i) == 0);
        for (int i = 0; i < 20; i++) {
            void *result;
            need(pthread_join(threads[i], &result) == 0);
            wrong += result != (void *)(intptr_t)i;
        }
        if (round == 0)
            before = mapped_kib();
    }
    say("ran %d wrong %d", total, wrong);
    show("address space grew", mapped_kib() > before + 1024);
    return 0;
}
