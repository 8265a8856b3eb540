/*
 * futex(2): FUTEX_WAKE_BITSET wakes only waiters whose bits overlap; an empty set is EINVAL; the timeout is
 * absolute.
 */
#include "../contract.h"
#include <linux/futex.h>

static volatile int word, woken;

static void *waiter(void *bits)
{
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (unsigned)(uintptr_t)bits);
    __atomic_or_fetch(&woken, (int)(uintptr_t)bits, __ATOMIC_SEQ_CST);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    need(pthread_create(&threads[0], NULL, waiter, (void *)1) == 0);
    need(pthread_create(&threads[1], NULL, waiter, (void *)2) == 0);
    sleep_ms(80);
    RESULT(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 4));
    RESULT(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 2));
    sleep_ms(40);
    show("woken bits", woken);
    RESULT(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 7));
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    show("woken bits", woken);
    RESULT(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 0));
    RESULT(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0));
    struct timespec past = { 0, 1 };
    RESULT(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, 1));
    return 0;
}
