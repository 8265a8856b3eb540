/* mmap(2): anonymous pages start as zeros; MAP_PRIVATE is copied by fork, MAP_SHARED is seen by both sides. */
#include "../contract.h"

static char *private_memory, *shared_memory;

static int child(void *unused)
{
    (void)unused;
    private_memory[0] = shared_memory[0] = 'c';
    private_memory[5 * PAGE] = shared_memory[5 * PAGE] = 'd';
    return 0;
}

int main(void)
{
    private_memory = fresh_pages(8);
    shared_memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(shared_memory != MAP_FAILED);
    int bits = 0;
    for (size_t i = 0; i < 8 * PAGE; i++)
        bits |= private_memory[i] | shared_memory[i];
    show("bits set", bits);
    private_memory[0] = shared_memory[0] = 'p';
    in_child(child, NULL);
    say("private %c %d shared %c %c", private_memory[0], private_memory[5 * PAGE], shared_memory[0],
        shared_memory[5 * PAGE]);
    return 0;
}
