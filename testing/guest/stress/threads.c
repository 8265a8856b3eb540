/*
 * Threads and events: locks made of raw futexes, queues between threads, thread-local data, and counters that cross
 * processes through eventfd and epoll without losing a unit.
 */
#include "stress.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { THREADS_MAX = 6, QUEUE = 8, EVENT_PROCESSES = 3 };

static long futex(volatile int *word, int operation, int value)
{
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Drepper's second mutex: 0 free, 1 taken, 2 taken with waiters. */
static void lock(volatile int *word)
{
    int seen = 0;
    if (__atomic_compare_exchange_n(word, &seen, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    if (seen != 2)
        seen = __atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE);
    while (seen) {
        futex(word, FUTEX_WAIT_PRIVATE, 2);
        seen = __atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE);
    }
}

static void unlock(volatile int *word)
{
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
        futex(word, FUTEX_WAKE_PRIVATE, 1);
}

struct crew {
    struct worker *worker;
    volatile int word, holders;
    long counter, wanted;
    int turns;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int queue[QUEUE], filled;
    long sent, received;
    volatile int failures;
};

static __thread long own;

static void *adder(void *argument)
{
    struct crew *crew = argument;
    own = (long)(uintptr_t)&own;
    for (int i = 0; i < crew->turns; i++) {
        lock(&crew->word);
        crew->failures += ++crew->holders != 1;
        crew->counter++;
        if (i % 64 == 0)
            sched_yield();
        crew->holders--;
        unlock(&crew->word);
    }
    crew->failures += own != (long)(uintptr_t)&own;
    return (void *)(uintptr_t)crew->turns;
}

static void *sender(void *argument)
{
    struct crew *crew = argument;
    for (int i = 1; i <= crew->turns; i++) {
        pthread_mutex_lock(&crew->mutex);
        while (crew->filled == QUEUE)
            pthread_cond_wait(&crew->changed, &crew->mutex);
        crew->queue[crew->filled++] = i;
        crew->sent += i;
        pthread_cond_broadcast(&crew->changed);
        pthread_mutex_unlock(&crew->mutex);
    }
    return NULL;
}

static void *receiver(void *argument)
{
    struct crew *crew = argument;
    for (int i = 0; i < crew->turns; i++) {
        pthread_mutex_lock(&crew->mutex);
        while (crew->filled == 0)
            pthread_cond_wait(&crew->changed, &crew->mutex);
        crew->received += crew->queue[--crew->filled];
        pthread_cond_broadcast(&crew->changed);
        pthread_mutex_unlock(&crew->mutex);
    }
    return NULL;
}

void round_threads(struct worker *self)
{
    struct crew crew = { .worker = self, .turns = 50 + (int)below(self, 400) };
    pthread_t threads[THREADS_MAX * 2];
    int count = 1 + (int)below(self, THREADS_MAX);
    pthread_mutex_init(&crew.mutex, NULL);
    pthread_cond_init(&crew.changed, NULL);
    for (int i = 0; i < count; i++)
        must_hold(self, pthread_create(&threads[i], NULL, adder, &crew) == 0);
    for (int i = 0; i < count; i++) {
        void *result;
        must_hold(self, pthread_join(threads[i], &result) == 0 && (uintptr_t)result == (uintptr_t)crew.turns);
    }
    if (crew.counter != (long)count * crew.turns || crew.failures)
        broken(self, "%d threads of %d turns counted %ld, %d failures", count, crew.turns, crew.counter, crew.failures);
    for (int i = 0; i < count; i++) {
        must_hold(self, pthread_create(&threads[2 * i], NULL, sender, &crew) == 0);
        must_hold(self, pthread_create(&threads[2 * i + 1], NULL, receiver, &crew) == 0);
    }
    for (int i = 0; i < 2 * count; i++)
        must_hold(self, pthread_join(threads[i], NULL) == 0);
    if (crew.sent != crew.received || crew.filled)
        broken(self, "sent %ld, received %ld, %d left", crew.sent, crew.received, crew.filled);
    self->operations += (long)count * crew.turns * 3;
}

struct event_plan {
    int counters[EVENT_PROCESSES], turns;
};

static int adds(struct worker *self, void *argument)
{
    struct event_plan *plan = argument;
    self->random ^= (uint64_t)getpid() << 24 | 1;
    for (int i = 0; i < plan->turns; i++) {
        uint64_t one = 1;
        must_hold(self, write(plan->counters[below(self, EVENT_PROCESSES)], &one, 8) == 8);
    }
    return 0;
}

/* Several processes add to several eventfds; epoll must report every unit. */
void round_events(struct worker *self)
{
    struct event_plan plan = { .turns = 20 + (int)below(self, 200) };
    int epoll = epoll_create1(EPOLL_CLOEXEC), edge = (int)below(self, 2);
    pid_t children[EVENT_PROCESSES];
    must_hold(self, epoll != -1);
    for (int i = 0; i < EVENT_PROCESSES; i++) {
        plan.counters[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        struct epoll_event event = { EPOLLIN | (edge ? EPOLLET : 0), { .fd = plan.counters[i] } };
        must_hold(self, epoll_ctl(epoll, EPOLL_CTL_ADD, plan.counters[i], &event) == 0);
    }
    for (int i = 0; i < EVENT_PROCESSES; i++)
        children[i] = start(self, adds, &plan);
    for (long total = 0; total < (long)EVENT_PROCESSES * plan.turns;) {
        struct epoll_event got[EVENT_PROCESSES];
        int count = epoll_wait(epoll, got, EVENT_PROCESSES, 20000);
        if (count <= 0)
            broken(self, "epoll_wait gave %d with %ld of %d units seen", count, total, EVENT_PROCESSES * plan.turns);
        for (int i = 0; i < count; i++) {
            uint64_t units;
            ssize_t got_bytes = read(got[i].data.fd, &units, 8);
            must_hold(self, got_bytes == 8 || (got_bytes == -1 && errno == EAGAIN));
            total += got_bytes == 8 ? (long)units : 0;
        }
        self->operations += count;
    }
    for (int i = 0; i < EVENT_PROCESSES; i++) {
        must_hold(self, finish(self, children[i]) == 0);
        close(plan.counters[i]);
    }
    close(epoll);
}
