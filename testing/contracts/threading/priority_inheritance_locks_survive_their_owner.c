/*
 * futex(2), pthread_mutexattr_setprotocol(3): waiters of a PTHREAD_PRIO_INHERIT lock time out, take turns, and learn
 * that a robust one's owner died.
 */
#include "../contract.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

static pthread_mutex_t lock;
static long counter;
static volatile int word;

static void *adds(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *dies(void *unused)
{
    pthread_mutex_lock(&lock);
    sleep_ms(60);
    return unused;
}

static void *takes(void *unused)
{
    need(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
    sleep_ms(60);
    return unused;
}

static void make(int robust)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    need(pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT) == 0);
    if (robust)
        need(pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0);
    need(pthread_mutex_init(&lock, &kind) == 0);
}

int main(void)
{
    pthread_t threads[4];
    make(0);
    for (int i = 0; i < 4; i++)
        need(pthread_create(&threads[i], NULL, adds, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    show("counted", counter);
    section("the owner ends with the lock");
    make(1);
    need(pthread_create(&threads[0], NULL, dies, NULL) == 0);
    sleep_ms(20);
    show("lock says owner died", pthread_mutex_lock(&lock) == EOWNERDEAD);
    show("made consistent", pthread_mutex_consistent(&lock));
    show("unlock", pthread_mutex_unlock(&lock));
    pthread_join(threads[0], NULL);
    section("no list, and a time limit");
    need(pthread_create(&threads[0], NULL, takes, NULL) == 0);
    for (int i = 0; i < 400 && word == 0; i++)
        sleep_ms(5);
    struct timespec past = { 1, 0 };
    RESULT(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, &past, NULL, 0));
    RESULT(syscall(SYS_futex, &word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    RESULT(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    RESULT(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    show("ours, and the owner died", (word & FUTEX_TID_MASK) == (int)syscall(SYS_gettid) && (word & FUTEX_OWNER_DIED));
    pthread_join(threads[0], NULL);
    word = 0x3ffffffe;
    RESULT(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    return 0;
}
