/*
 * futex(2), FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI: a condition variable's waiters are woken owning the lock,
 * one after the other, or moved to it asleep; the two calls go with each other only.
 */
#include "../contract.h"
#include <linux/futex.h>
#include <pthread.h>

#define PRIVATE FUTEX_PRIVATE_FLAG

static volatile unsigned cond, lock, other;
static volatile int inside, done, collided;

static long futex(volatile unsigned *word, int op, unsigned value, long timeout, volatile unsigned *second,
    unsigned third)
{
    return syscall(SYS_futex, word, op, value, timeout, second, third);
}

static unsigned self(void) { return (unsigned)syscall(SYS_gettid); }

static void take(void)
{
    if (!__sync_bool_compare_and_swap(&lock, 0, self()))
        need(futex(&lock, FUTEX_LOCK_PI | PRIVATE, 0, 0, NULL, 0) == 0);
}

static void give(void)
{
    if (!__sync_bool_compare_and_swap(&lock, self(), 0))
        need(futex(&lock, FUTEX_UNLOCK_PI | PRIVATE, 0, 0, NULL, 0) == 0);
}

/* As a condition variable waits: the lock is left, the wait ends with the lock taken. */
static void *waits(void *unused)
{
    take();
    unsigned seen = cond;
    inside++;
    give();
    while (futex(&cond, FUTEX_WAIT_REQUEUE_PI | PRIVATE, seen, 0, &lock, 0) != 0) {
        need(errno == EAGAIN || errno == EINTR);
        take();
        if (cond != seen)
            break;
        give();
    }
    collided += (lock & FUTEX_TID_MASK) != self();
    done++;
    give();
    return unused;
}

static void wait_for(volatile int *count, int least)
{
    for (int turn = 0; turn < 2000 && *count < least; turn++)
        sleep_ms(2);
    sleep_ms(30);
}

static void broadcast(unsigned most, const char *title)
{
    enum { WAITERS = 5 };
    pthread_t threads[WAITERS];
    section(title);
    inside = done = collided = 0;
    for (int i = 0; i < WAITERS; i++)
        need(pthread_create(&threads[i], NULL, waits, NULL) == 0);
    wait_for(&inside, WAITERS);
    take();
    unsigned next = ++cond;
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, most, &lock, next + 1));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, most, &lock, next));
    show("still asleep", done);
    give();
    for (unsigned left = most + 1; left < WAITERS; left += most + 1) {
        wait_for(&done, left);
        RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, most, &lock, next));
    }
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    show("done", done);
    show("without the lock", collided);
    show("the lock is free", (lock & FUTEX_TID_MASK) == 0);
    lock = 0;
}

static volatile long ended;
static volatile unsigned *target;

static void *waits_once(void *limit)
{
    inside++;
    ended = futex(&cond, FUTEX_WAIT_REQUEUE_PI | PRIVATE, cond, (long)limit, target, 0);
    if (ended == -1)
        ended = -errno;
    return NULL;
}

static void nothing(int number) { (void)number; }

static void alone(const char *title, void *limit, void (*act)(pthread_t), volatile unsigned *moves_to)
{
    pthread_t thread;
    section(title);
    inside = 0;
    target = moves_to;
    need(pthread_create(&thread, NULL, waits_once, limit) == 0);
    wait_for(&inside, 1);
    act(thread);
    pthread_join(thread, NULL);
    say("the wait gave %s", ended < 0 ? errno_name(-ended) : "the lock");
    if ((lock & FUTEX_TID_MASK) != self())
        lock = 0;
}

static void mismatches(pthread_t thread)
{
    (void)thread;
    RESULT(futex(&cond, FUTEX_WAKE | PRIVATE, 1, 0, NULL, 0));
    RESULT(futex(&cond, FUTEX_WAKE_BITSET | PRIVATE, 1, 0, NULL, 1));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE | PRIVATE, 1, 1, &lock, cond));
    RESULT(futex(&cond, FUTEX_REQUEUE | PRIVATE, 0, 1, &lock, 0));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &other, cond));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, cond));
}

static void lets_time_pass(pthread_t thread) { (void)thread; }

static void moves_and_holds(pthread_t thread)
{
    (void)thread;
    take();
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, cond));
    RESULT(futex(&lock, FUTEX_WAKE | PRIVATE, 1, 0, NULL, 0));
    sleep_ms(400);
}

static void moves_and_signals(pthread_t thread)
{
    take();
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, cond));
    sleep_ms(20);
    need(pthread_kill(thread, SIGUSR1) == 0);
    sleep_ms(50);
}

static void signals_then_takes(pthread_t thread)
{
    need(pthread_kill(thread, SIGUSR1) == 0);
    sleep_ms(30);
    /* Started again after the handler, it waits as before. */
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, cond));
}

static void owned_by_itself(pthread_t thread)
{
    (void)thread;
    lock = 0x3ffffffe;
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, cond));
    lock = 0;
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, cond));
}

static void *waits_plainly(void *unused)
{
    inside++;
    futex(&cond, FUTEX_WAIT | PRIVATE, cond, 0, NULL, 0);
    return unused;
}

int main(void)
{
    struct timespec soon = { 0 };
    pthread_t thread;
    catch_signal(SIGUSR1, nothing, 0);
    section("what is refused");
    RESULT(futex(&cond, FUTEX_WAIT_REQUEUE_PI | PRIVATE, 0, 0, &cond, 0));
    RESULT(futex(&cond, FUTEX_WAIT_REQUEUE_PI | PRIVATE, 1, 0, &lock, 0));
    RESULT(futex(&cond, FUTEX_WAIT_REQUEUE_PI | PRIVATE, 0, 0, (unsigned *)((char *)&lock + 1), 0));
    RESULT(futex((unsigned *)((char *)&cond + 2), FUTEX_WAIT_REQUEUE_PI | PRIVATE, 0, 0, &lock, 0));
    RESULT(futex(&cond, FUTEX_WAIT_REQUEUE_PI | PRIVATE, 0, 8, &lock, 0));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &cond, 0));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 2, 0, &lock, 0));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 0, 0, &lock, 0));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, -1, &lock, 0));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, 1));
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 5, &lock, 0));
    broadcast(100, "all at once");
    broadcast(1, "two at a time");
    broadcast(0, "one at a time");
    alone("other operations meet a waiter", NULL, mismatches, &lock);
    alone("the lock has no owner", NULL, owned_by_itself, &lock);
    soon.tv_sec = 1;
    alone("a time limit before it is moved", &soon, lets_time_pass, &lock);
    clock_gettime(CLOCK_MONOTONIC, &soon);
    soon.tv_nsec += 200000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    alone("a time limit after it is moved", &soon, moves_and_holds, &lock);
    give();
    alone("a signal after it is moved", NULL, moves_and_signals, &lock);
    give();
    lock = 0;
    alone("a signal before it is moved", NULL, signals_then_takes, &lock);
    section("an ordinary waiter");
    inside = 0;
    need(pthread_create(&thread, NULL, waits_plainly, NULL) == 0);
    wait_for(&inside, 1);
    RESULT(futex(&cond, FUTEX_CMP_REQUEUE_PI | PRIVATE, 1, 0, &lock, cond));
    RESULT(futex(&cond, FUTEX_LOCK_PI | PRIVATE, 0, 0, NULL, 0));
    RESULT(futex(&cond, FUTEX_WAKE | PRIVATE, 1, 0, NULL, 0));
    pthread_join(thread, NULL);
    return 0;
}
