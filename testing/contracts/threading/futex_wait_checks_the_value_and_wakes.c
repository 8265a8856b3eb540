/*
 * futex(2): FUTEX_WAIT sleeps only while the word has the expected value (else EAGAIN); FUTEX_WAKE returns how
 * many it woke.
 */
#include "../contract.h"
#include <linux/futex.h>

static volatile int word, woken;
static long futex(volatile int *at, int operation, int value, const struct timespec *limit)
{
    return syscall(SYS_futex, at, operation, value, limit, NULL, 0);
}

static void *waiter(void *unused)
{
    futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL);
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    struct timespec shortly = { 0, 20000000 }, wrong = { 0, -1 };
    RESULT(futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL));
    RESULT(futex(&word, FUTEX_WAIT_PRIVATE, 0, &shortly));
    RESULT(futex(&word, FUTEX_WAIT_PRIVATE, 0, &wrong));
    RESULT(futex(&word, FUTEX_WAKE_PRIVATE, 9, NULL));
    for (int i = 0; i < 3; i++)
        need(pthread_create(&threads[i], NULL, waiter, NULL) == 0);
    sleep_ms(80);
    RESULT(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL));
    sleep_ms(40);
    show("woken", woken);
    RESULT(futex(&word, FUTEX_WAKE_PRIVATE, 100, NULL));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    show("woken", woken);
    RESULT(futex((volatile int *)((char *)&word + 1), FUTEX_WAIT_PRIVATE, 0, &shortly));
    RESULT(futex(bad_pointer(), FUTEX_WAIT_PRIVATE, 0, &shortly));
    RESULT(futex(bad_pointer(), FUTEX_WAKE_PRIVATE, 1, NULL));
    RESULT(futex(&word, 99, 0, NULL));
    return 0;
}
