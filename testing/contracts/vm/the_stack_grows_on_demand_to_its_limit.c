/* mmap(2), getrlimit(2): the main stack grows by faults below the stack pointer up to RLIMIT_STACK, then SIGSEGV. */
#include "../contract.h"
#include <sys/resource.h>

static int grow(void *bytes)
{
    size_t size = *(size_t *)bytes;
    volatile char *area = __builtin_alloca(size);
    for (size_t at = size; at >= PAGE; at -= PAGE)
        area[at - 1] = 1;
    area[0] = 1;
    return area[size - 1] == 1 ? 0 : 1;
}

static int jump(void *bytes)
{
    size_t size = *(size_t *)bytes;
    volatile char *area = __builtin_alloca(size);
    area[0] = 7;
    return area[0] == 7 ? 0 : 1;
}

int main(void)
{
    struct rlimit limit;
    need(getrlimit(RLIMIT_STACK, &limit) == 0);
    say("soft limit %lld KiB", (long long)limit.rlim_cur / 1024);
    size_t sizes[] = { 64 << 10, 1 << 20, 6 << 20, 9 << 20 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        say("%zu KiB", sizes[i] / 1024);
        show_status("page by page", in_child(grow, &sizes[i]));
        show_status("in one jump", in_child(jump, &sizes[i]));
    }
    limit.rlim_cur = 512 << 10;
    need(setrlimit(RLIMIT_STACK, &limit) == 0);
    show_status("1 MiB under a limit of 512 KiB", in_child(grow, &sizes[1]));
    show_status("64 KiB under a limit of 512 KiB", in_child(grow, &sizes[0]));
    return 0;
}
