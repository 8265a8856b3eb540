/* pthread_rwlock_rdlock(3), pthread_once(3): readers share, a writer excludes, and once runs exactly once. */
#include "../contract.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int runs, values[8], torn;

static void only_once(void) { runs++; sleep_ms(5); }

static void *reader(void *unused)
{
    pthread_once(&once, only_once);
    for (int i = 0; i < 300; i++) {
        pthread_rwlock_rdlock(&lock);
        int first = values[0];
        for (int at = 1; at < 8; at++)
            if (values[at] != first)
                __atomic_add_fetch(&torn, 1, __ATOMIC_SEQ_CST);
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}

static void *writer(void *unused)
{
    pthread_once(&once, only_once);
    for (int i = 0; i < 100; i++) {
        pthread_rwlock_wrlock(&lock);
        for (int at = 0; at < 8; at++) {
            values[at]++;
            if (at == 4)
                sched_yield();
        }
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[5];
    for (int i = 0; i < 5; i++)
        need(pthread_create(&threads[i], NULL, i < 2 ? writer : reader, NULL) == 0);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    say("torn %d value %d runs of once %d", torn, values[7], runs);
    return 0;
}
