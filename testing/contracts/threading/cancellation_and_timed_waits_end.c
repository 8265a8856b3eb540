/*
 * pthread_cancel(3), sem_timedwait(3): a thread blocked in read is cancelled, a timed lock gives up with
 * ETIMEDOUT.
 */
#include "../contract.h"
#include <semaphore.h>

static int ends[2];
static int cleaned;
static void clean(void *unused) { (void)unused; cleaned = 1; }

static void *reader(void *unused)
{
    char byte;
    pthread_cleanup_push(clean, NULL);
    if (read(ends[0], &byte, 1) == 1)
        cleaned = 2;
    pthread_cleanup_pop(0);
    return unused;
}

int main(void)
{
    pthread_t thread;
    void *result;
    need(pipe(ends) == 0 && pthread_create(&thread, NULL, reader, NULL) == 0);
    sleep_ms(40);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    say("cancelled %d, cleaned up %d", result == PTHREAD_CANCELED, cleaned);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 30000000;
    if (limit.tv_nsec >= 1000000000)
        limit.tv_sec++, limit.tv_nsec -= 1000000000;
    sem_t semaphore;
    sem_init(&semaphore, 0, 1);
    RESULT(sem_timedwait(&semaphore, &limit));
    RESULT(sem_timedwait(&semaphore, &limit));
    RESULT(sem_trywait(&semaphore));
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    show_text("timed lock", errno_name(pthread_mutex_timedlock(&lock, &limit)));
    show_text("try lock", errno_name(pthread_mutex_trylock(&lock)));
    return 0;
}
