/*
 * pthread_mutex_lock(3): threads that add under a lock lose no addition, and condition variables hand over in both
 * directions.
 */
#include "../contract.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long counter;
static int turn, rounds;

static void *adder(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&lock);
        long value = counter;
        if (i % 256 == 0)
            sched_yield();
        counter = value + 1;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *player(void *me)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        while (turn != (int)(intptr_t)me)
            pthread_cond_wait(&changed, &lock);
        turn = !turn;
        rounds++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        need(pthread_create(&threads[i], NULL, adder, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    show("counter", counter);
    for (int i = 0; i < 2; i++)
        need(pthread_create(&threads[i], NULL, player, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    show("rounds", rounds);
    return 0;
}
