/* futex(2): FUTEX_CMP_REQUEUE wakes some and moves the rest to another word, only if the value still matches. */
#include "../contract.h"
#include <linux/futex.h>

static volatile int one, two, woken;

static void *waiter(void *unused)
{
    syscall(SYS_futex, &one, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        need(pthread_create(&threads[i], NULL, waiter, NULL) == 0);
    sleep_ms(100);
    RESULT(syscall(SYS_futex, &one, FUTEX_CMP_REQUEUE_PRIVATE, 1, 2L, &two, 5));
    RESULT(syscall(SYS_futex, &one, FUTEX_CMP_REQUEUE_PRIVATE, 1, 2L, &two, 0));
    sleep_ms(40);
    show("woken", woken);
    RESULT(syscall(SYS_futex, &one, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    RESULT(syscall(SYS_futex, &two, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    show("woken", woken);
    return 0;
}
