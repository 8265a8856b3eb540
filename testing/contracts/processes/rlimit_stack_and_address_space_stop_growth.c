/* getrlimit(2): RLIMIT_AS makes mmap and brk fail with ENOMEM, RLIMIT_CPU and RLIMIT_CORE keep their values. */
#include "../contract.h"
#include <sys/resource.h>

static int limited(void *unused)
{
    (void)unused;
    struct rlimit limit = { 16 << 20, 16 << 20 };
    RESULT(setrlimit(RLIMIT_AS, &limit));
    OUTCOME(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    show("brk refuses", (long)syscall(SYS_brk, (char *)syscall(SYS_brk, 0) + (64 << 20)) == syscall(SYS_brk, 0));
    limit.rlim_cur = 0, limit.rlim_max = 0;
    RESULT(setrlimit(RLIMIT_DATA, &limit));
    OUTCOME(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return 0;
}

int main(void)
{
    struct rlimit limit = { 5, 9 };
    RESULT(setrlimit(RLIMIT_CORE, &limit));
    limit = (struct rlimit){ 0, 0 };
    RESULT(getrlimit(RLIMIT_CORE, &limit));
    say("core %lld %lld", (long long)limit.rlim_cur, (long long)limit.rlim_max);
    show_status("limited", in_child(limited, NULL));
    return 0;
}
