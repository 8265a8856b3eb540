/*
 * contract: timeout=60
 * clone(2), CLONE_PARENT: a process made as a sibling while their parent ends gets the parent that the sibling gets. It
 * never keeps the number of one that is gone, whose next owner would be sent the signal of its end.
 */
#include "security.h"

#define ROUNDS 300

struct shared { volatile int gone, started, done, wrong, maker; pid_t heir; };
static struct shared *shared;

static int sibling(void)
{
    while (!shared->gone)
        sched_yield();
    if (getppid() != shared->heir)
        __atomic_fetch_add(&shared->wrong, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&shared->done, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static int makes(void *unused)
{
    shared->maker = getpid();
    for (int made = 0; made < 8; made++) {
        pid_t child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
            _exit(sibling());
        shared->started += child > 0;
    }
    return unused != NULL;
}

static int parent(void *round)
{
    spawn(makes, NULL);
    while (!shared->maker)
        ;
    for (long pause = (long)round % 50 * 200; pause > 0; pause--)
        __asm__ volatile("pause");
    return 0;
}

static int attempt(void *unused)
{
    (void)unused;
    need(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    shared->heir = getpid();
    for (long round = 0; round < ROUNDS; round++) {
        shared->gone = shared->started = shared->done = shared->maker = 0;
        reap(spawn(parent, (void *)round));
        reap(shared->maker);
        shared->gone = 1;
        for (int look = 0; look < 20000 && shared->done < shared->started; look++)
            sched_yield();
        while (waitpid(-1, NULL, shared->done < shared->started ? WNOHANG : 0) > 0)
            ;
    }
    show("siblings with a parent that is gone", shared->wrong);
    return 0;
}

int main(void)
{
    shared = shared_page();
    as_nobody(attempt, NULL);
    return 0;
}
