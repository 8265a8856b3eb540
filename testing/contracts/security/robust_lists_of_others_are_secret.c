/*
 * get_robust_list(2): the list head is an address in the process, told only to who may trace it.
 */
#include "security.h"

static void with_list(void)
{
    static struct { void *next; long offset; void *pending; } head;
    head.next = &head;
    need(syscall(SYS_set_robust_list, &head, sizeof head) == 0);
}

static void users_list(void)
{
    become_nobody();
    with_list();
}

static void hidden_list(void)
{
    users_list();
    need(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static int attempt(void *victim)
{
    void *head = NULL;
    size_t length = 0;
    RESULT(syscall(SYS_get_robust_list, *(pid_t *)victim, &head, &length));
    show("told", head != NULL);
    RESULT(syscall(SYS_get_robust_list, 0, &head, &length));
    RESULT(syscall(SYS_get_robust_list, getpid(), &head, &length));
    RESULT(syscall(SYS_get_robust_list, 9999999, &head, &length));
    RESULT(syscall(SYS_get_robust_list, -1, &head, &length));
    return 0;
}

int main(void)
{
    void (*const prepare[])(void) = { with_list, users_list, hidden_list };
    for (size_t at = 0; at < COUNT_OF(prepare); at++) {
        section(at == 0 ? "root's" : at == 1 ? "one's own" : "one's own that is not dumpable");
        pid_t victim = start_victim(prepare[at]);
        as_nobody(attempt, &victim);
        in_child(attempt, &victim);
        end_victim("victim", victim);
    }
    return 0;
}
