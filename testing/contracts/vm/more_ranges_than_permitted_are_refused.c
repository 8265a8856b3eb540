/*
 * mmap(2), vm.max_map_count: an address space has at most 65530 ranges; what would need more is ENOMEM, and the process
 * goes on, forks and unmaps with as many.
 * contract: timeout=60
 */
#include "../contract.h"

enum { PAGES = 140000 };

static int copy(void *memory)
{
    return mprotect((char *)memory + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
}

int main(void)
{
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(memory != MAP_FAILED);
    int split = 0;
    while (split < PAGES / 2 && mprotect(memory + 2 * split * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0)
        split++;
    show_text("the next split is refused with", errno_name(errno));
    check(split > 32000 && split < 32766, "about as many pieces as the limit says");
    OUTCOME(mmap(NULL, PAGE, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memory[0] = 5;
    show_status("a child that joins two of them", in_child(copy, memory));
    show("still there", memory[0]);
    RESULT(munmap(memory, PAGES * PAGE));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return 0;
}
