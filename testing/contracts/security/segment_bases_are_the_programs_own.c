/*
 * FS and GS bases: the kernel takes only addresses of programs (arch_prctl(2), clone(2) with CLONE_SETTLS), and is not
 * misled by what a program sets by instruction: calls, faults, signals and switches leave both bases as they were.
 */
#include "contract.h"
#include <asm/prctl.h>
#include <linux/sched.h>

static long set(int which, unsigned long base) { return syscall(SYS_arch_prctl, which, base); }

static unsigned long gs_base(void)
{
    unsigned long base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return base;
}

static void set_gs_base(unsigned long base) { __asm__ volatile("wrgsbase %0" :: "r"(base)); }

static int not_canonical(void *unused)
{
    (void)unused;
    set_gs_base(0x8000000000000000);
    return 0;
}

static volatile unsigned long seen;
static void look(int number)
{
    (void)number;
    seen = gs_base();
}

static int child_looks(void *wanted)
{
    return gs_base() == *(unsigned long *)wanted;
}

int main(void)
{
    /* Bad with four and with five levels of page tables. */
    static const unsigned long bad[] = {
        1UL << 56, 1UL << 63, 0xfeffffffffffffff, 0xffff800000000000, 0xffffffff81000000, ~0UL,
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        say("base %#lx", bad[i]);
        RESULT(set(ARCH_SET_GS, bad[i]));
        RESULT(set(ARCH_SET_FS, bad[i]));
        RESULT(syscall(SYS_clone, CLONE_SETTLS | SIGCHLD, 0, 0, 0, bad[i]));
    }
    RESULT(set(ARCH_SET_GS, 0x7fffffffefff));
    say("gs base %#lx", gs_base());
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_GS, 0xffff800000000000));
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_FS, 8));
    show_status("a base that is not canonical", in_child(not_canonical, NULL));

    /* Now one that looks like the kernel's. */
    static unsigned long like_the_kernel = 0xffffffff81000000;
    catch_signal(SIGUSR1, look, 0);
    set_gs_base(like_the_kernel);
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_GS, &seen));
    say("told %#lx", seen);
    raise(SIGUSR1);
    say("in a handler %#lx", seen);
    char *page = fresh_pages(1);
    page[0] = 1;
    sleep_ms(5);
    sched_yield();
    say("after a fault, a sleep and a yield %#lx", gs_base());
    show_status("a child that inherits it", in_child(child_looks, &like_the_kernel));
    say("the machine lives");
    return 0;
}
