/*
 * clone(2): CLONE_PARENT_SETTID, CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID store and clear the tid, the last
 * with a futex wake.
 */
#include "../contract.h"

static volatile int child_tid = -1, seen_in_child;
static char stack[65536] __attribute__((aligned(16)));

static int body(void *unused)
{
    (void)unused;
    seen_in_child = child_tid == (int)syscall(SYS_gettid);
    sleep_ms(20);
    return 0;
}

int main(void)
{
    int parent_tid = 0;
    pid_t child = clone(body, stack + sizeof stack,
                        CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, NULL,
                        &parent_tid, NULL, &child_tid);
    need(child != -1);
    show("parent's word is the pid", parent_tid == child);
    while (child_tid) {
        int tid = child_tid;
        if (tid)
            syscall(SYS_futex, &child_tid, 0 /* FUTEX_WAIT */, tid, NULL, NULL, 0);
    }
    show("the word is cleared", child_tid);
    show("the child saw its own tid", seen_in_child);
    show_status("child", reap(child));
    return 0;
}
