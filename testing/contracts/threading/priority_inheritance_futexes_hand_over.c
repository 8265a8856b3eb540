/*
 * futex(2): FUTEX_LOCK_PI puts the owner's tid in the word, hands over on unlock, and refuses a second lock by its
 * owner.
 */
#include "../contract.h"
#include <linux/futex.h>

static volatile int word, got_it;

static void *waiter(void *unused)
{
    if (syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0) {
        got_it = (word & FUTEX_TID_MASK) == (int)syscall(SYS_gettid);
        syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    RESULT(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    show("owned by us", (word & FUTEX_TID_MASK) == (int)syscall(SYS_gettid));
    RESULT(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    RESULT(syscall(SYS_futex, &word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    need(pthread_create(&thread, NULL, waiter, NULL) == 0);
    for (int i = 0; i < 400 && !(word & FUTEX_WAITERS); i++)
        sleep_ms(5);
    show("a waiter is marked", !!(word & FUTEX_WAITERS));
    RESULT(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    pthread_join(thread, NULL);
    show("handed over", got_it);
    show("free", word);
    RESULT(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    return 0;
}
