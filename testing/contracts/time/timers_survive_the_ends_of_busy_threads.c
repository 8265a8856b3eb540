/*
 * timer_create(2), CLOCK_PROCESS_CPUTIME_ID: threads that worked end while a timer on the process's clock is nearly
 * due, again and again. The process goes on, the clock never goes back, and the timer goes off when the time is used.
 * contract: timeout=60
 */
#include "../contract.h"

#define THREADS 12
#define CHILDREN 25
#define ROUNDS 4
#define WORK 60000000LL

static pthread_barrier_t worked, leave;
static volatile sig_atomic_t signals;
static volatile int over;

static void note(int number) { signals += number == SIGUSR1; }

static long long used(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void work(long long time)
{
    long long until = used(CLOCK_THREAD_CPUTIME_ID) + time;
    while (used(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

/* Leaves children behind: giving them another parent takes its time. */
static void *worker(void *unused)
{
    pid_t children[CHILDREN];
    work(WORK);
    for (int at = 0; at < CHILDREN; at++)
        if ((children[at] = fork()) == 0)
            for (;;)
                pause();
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&leave);
    return unused;
}

static void *busy(void *unused)
{
    while (!over)
        ;
    return unused;
}

static int round_of_ends(void *unused)
{
    pthread_t threads[THREADS], other;
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    need(setpgid(0, 0) == 0);
    catch_signal(SIGUSR1, note, SA_RESTART);
    pthread_barrier_init(&worked, NULL, THREADS + 1);
    pthread_barrier_init(&leave, NULL, THREADS + 1);
    for (int at = 0; at < THREADS; at++)
        need(pthread_create(&threads[at], NULL, worker, NULL) == 0);
    pthread_barrier_wait(&worked);
    /* Due when half of what one thread worked is used once more: by the wall's clock long before that. */
    struct itimerspec when = { .it_value = { 0, WORK / 2 } };
    need(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0 && timer_settime(timer, 0, &when, NULL) == 0);
    sleep_ms(WORK / 1000000);
    show("signals before", signals);
    need(pthread_create(&other, NULL, busy, NULL) == 0);
    long long before = used(CLOCK_PROCESS_CPUTIME_ID);
    int back = 0;
    pthread_barrier_wait(&leave);
    for (int at = 0; at < THREADS; at++) {
        pthread_join(threads[at], NULL);
        long long now = used(CLOCK_PROCESS_CPUTIME_ID);
        back += now < before;
        before = now;
    }
    work(WORK);
    show("signals after", signals);
    show("the clock went back", back);
    over = 1;
    pthread_join(other, NULL);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    return unused != NULL;
}

int main(void)
{
    for (int number = 0; number < ROUNDS; number++)
        show_status("the round", in_child(round_of_ends, NULL));
    return 0;
}
