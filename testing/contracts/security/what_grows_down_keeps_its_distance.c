/*
 * mmap(2) MAP_GROWSDOWN, brk(2), Documentation/admin-guide/kernel-parameters.txt (stack_guard_gap): the kernel places
 * nothing in the 256 pages below a mapping that grows down, so that a stack which grows meets a fault, not what another
 * part of the program keeps there. Who asks for a place by force gets it.
 */
#include "security.h"

#define GUARD (256 * PAGE)

static char *map(void *hint, size_t length, int flags)
{
    char *at = mmap(hint, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    need(at != MAP_FAILED);
    return at;
}

static int is_near(char *stack, char *at, size_t length) { return at < stack && at + length > stack - GUARD; }

static int touches(void *at)
{
    *(volatile char *)at = 1;
    return 0;
}

static int attempt(void *unused)
{
    (void)unused;
    /* A range without holes, so that the highest gap is the one below the stack. */
    char *room = map(NULL, 4096 * PAGE, 0), *stack = room + 2048 * PAGE;
    need(munmap(room, 2048 * PAGE) == 0 && munmap(stack + PAGE, 2047 * PAGE) == 0);
    need(map(stack, PAGE, MAP_FIXED | MAP_GROWSDOWN) == stack);
    int near = 0;
    for (int count = 0; count < 64; count++)
        near += is_near(stack, map(NULL, 64 * PAGE, 0), 64 * PAGE);
    show("placed near it", near);
    check(!is_near(stack, map(stack - PAGE, PAGE, 0), PAGE), "not even if a hint asks for it");
    check(!is_near(stack, map(stack - GUARD, PAGE, 0), PAGE), "nor at the other end");
    char *moving = map(NULL, PAGE, 0);
    char *moved = mremap(moving, PAGE, 700 * PAGE, MREMAP_MAYMOVE);
    check(moved != MAP_FAILED && !is_near(stack, moved, 700 * PAGE), "nor what is moved");
    show_status("growth towards them", in_child(touches, stack - PAGE));
    char *forced = stack - 3 * GUARD;
    munmap(forced, PAGE);
    check(map(forced, PAGE, MAP_FIXED_NOREPLACE) == forced, "by force");
    return 0;
}

static int heap(void *unused)
{
    (void)unused;
    char *end = (char *)syscall(SYS_brk, 0);
    char *stack = (char *)(((uintptr_t)end + 2 * GUARD) & -PAGE);
    need(map(stack, PAGE, MAP_FIXED_NOREPLACE | MAP_GROWSDOWN) == stack);
    check(syscall(SYS_brk, stack - GUARD - PAGE) == (long)(stack - GUARD - PAGE), "the heap grows up to it");
    check(syscall(SYS_brk, stack - GUARD) != (long)(stack - GUARD), "and not into it");
    check(syscall(SYS_brk, stack - 2 * PAGE) != (long)(stack - 2 * PAGE), "nor up to the stack");
    return 0;
}

int main(void)
{
    scratch();
    show_status("mappings", as_nobody(attempt, NULL));
    show_status("the heap", as_nobody(heap, NULL));
    return 0;
}
