/*
 * signal(7): tgkill reaches its thread only; a process signal goes to some thread that does not block it; masks
 * are per thread.
 */
#include "../contract.h"

static pthread_barrier_t barrier;
static volatile int handled_by = -1;
static __thread int me;

static void note(int number) { (void)number; handled_by = me; }

static void *thread(void *index)
{
    sigset_t set;
    me = (int)(intptr_t)index;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (me != 2)
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sigpending(&set);
    if (me == 1)
        show("pending for thread 1", sigismember(&set, SIGUSR1));
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    sigset_t set;
    catch_signal(SIGUSR1, note, 0);
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++)
        need(pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)(i + 1)) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_barrier_wait(&barrier);
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 400 && handled_by == -1; i++)
        sleep_ms(5);
    show("handled by thread", handled_by);
    handled_by = -1;
    pthread_kill(threads[0], SIGUSR1);
    sleep_ms(20);
    show("directed at a blocking thread, handled by", handled_by);
    sigpending(&set);
    show("pending for the main thread", sigismember(&set, SIGUSR1));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
