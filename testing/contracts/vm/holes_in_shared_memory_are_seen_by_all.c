/*
 * madvise(2), MADV_REMOVE: the pages of shared memory are gone for every process that maps them, not only for the one
 * that asked.
 */
#include "../contract.h"

static int ready[2], go[2];

int main(void)
{
    char byte;
    unsigned char *area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(area != MAP_FAILED && pipe(ready) == 0 && pipe(go) == 0);
    memset(area, 7, 4 * PAGE);
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        show("before", area[PAGE]);
        need(write(ready[1], "x", 1) == 1 && read(go[0], &byte, 1) == 1);
        show("in the hole", area[PAGE]);
        show("beside it", area[0]);
        area[PAGE] = 9;
        return 0;
    }
    need(read(ready[0], &byte, 1) == 1);
    RESULT(madvise(area + PAGE, 2 * PAGE, MADV_REMOVE));
    show("the caller's", area[PAGE]);
    need(write(go[1], "x", 1) == 1);
    show_status("child", reap(child));
    show("written by the other", area[PAGE]);
    return 0;
}
