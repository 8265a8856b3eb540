/*
 * get_robust_list(2): when a thread or process dies holding a robust lock the kernel sets FUTEX_OWNER_DIED and
 * wakes a waiter.
 */
#include "../contract.h"
#include <linux/futex.h>

struct shared {
    pthread_mutex_t lock;
    struct robust_list_head head;
    struct { struct robust_list list; volatile int word; } item;
};

static int dies_holding(void *argument)
{
    struct shared *shared = argument;
    need(pthread_mutex_lock(&shared->lock) == 0);
    return 0;
}

static int dies_with_own_list(void *argument)
{
    struct shared *shared = argument;
    shared->head.list.next = &shared->item.list;
    shared->item.list.next = &shared->head.list;
    shared->head.futex_offset = (char *)&shared->item.word - (char *)&shared->item.list;
    shared->head.list_op_pending = NULL;
    shared->item.word = syscall(SYS_gettid) | FUTEX_WAITERS;
    RESULT(syscall(SYS_set_robust_list, &shared->head, sizeof shared->head));
    RESULT(syscall(SYS_set_robust_list, &shared->head, 8));
    raise(SIGKILL);
    return 0;
}

int main(void)
{
    struct shared *shared = shared_page();
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    need(pthread_mutex_init(&shared->lock, &kind) == 0);
    show_status("holder", in_child(dies_holding, shared));
    show_text("lock", errno_name(pthread_mutex_lock(&shared->lock)));
    show_text("made consistent", errno_name(pthread_mutex_consistent(&shared->lock)));
    show_text("unlock", errno_name(pthread_mutex_unlock(&shared->lock)));
    show_text("lock again", errno_name(pthread_mutex_lock(&shared->lock)));
    show_status("holder of its own list", in_child(dies_with_own_list, shared));
    say("owner died %d waiters kept %d", !!(shared->item.word & FUTEX_OWNER_DIED),
        !!(shared->item.word & FUTEX_WAITERS));
    show("tid cleared", (shared->item.word & FUTEX_TID_MASK) == 0);
    return 0;
}
