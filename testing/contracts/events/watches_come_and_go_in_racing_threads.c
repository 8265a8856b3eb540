/*
 * epoll(7), epoll_ctl(2): a watch that one thread removes while another adds it leaves nothing behind: two epolls may
 * watch each other one after the other, events go once through them, and the depth that is left is not used up. Of two
 * threads that close a circle from both ends at most one succeeds.
 * contract: timeout=40
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define ROUNDS 1000
static int first, second, event;
static pthread_barrier_t both;
static volatile int added_back, stop;

static int control(int set, int operation, int fd)
{
    struct epoll_event wish = { .events = EPOLLIN };
    return epoll_ctl(set, operation, fd, &wish);
}

static void *remover(void *unused)
{
    (void)unused;
    while (!stop)
        control(first, EPOLL_CTL_DEL, second);
    return NULL;
}

static void *back_adder(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&both);
        added_back = control(second, EPOLL_CTL_ADD, first) == 0;
        pthread_barrier_wait(&both);
    }
    return NULL;
}

/* How many events are ready in a set. */
static int ready(int set)
{
    struct epoll_event found[4];
    return epoll_wait(set, found, 4, 0);
}

static int ring(void)
{
    uint64_t one = 1;
    return write(event, &one, sizeof one) == sizeof one;
}

static void quiet(void)
{
    uint64_t value;
    need(read(event, &value, sizeof value) == sizeof value);
}

static void removed_while_added(void)
{
    pthread_t other;
    long bad = 0;
    section("removed while added");
    need(pthread_create(&other, NULL, remover, NULL) == 0);
    for (int round = 0; round < 20 * ROUNDS; round++)
        if (control(first, EPOLL_CTL_ADD, second) == -1)
            bad += errno != EEXIST;
    stop = 1;
    need(pthread_join(other, NULL) == 0);
    control(first, EPOLL_CTL_DEL, second);
    /* The other way round: nothing of the first watch is in the way, and a wake-up goes through once. */
    bad += control(second, EPOLL_CTL_ADD, first) != 0;
    bad += control(first, EPOLL_CTL_ADD, event) != 0;
    bad += !ring() || ready(second) != 1 || ready(first) != 1;
    quiet();
    bad += ready(second) != 0 || ready(first) != 0;
    bad += control(first, EPOLL_CTL_DEL, event) != 0 || control(second, EPOLL_CTL_DEL, first) != 0;
    show("bad", bad);
}

static void circles(void)
{
    pthread_t other;
    long bad = 0;
    section("circle from both ends");
    need(pthread_create(&other, NULL, back_adder, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&both);
        int added = control(first, EPOLL_CTL_ADD, second) == 0;
        pthread_barrier_wait(&both);
        bad += added + added_back != 1;
        bad += control(added ? first : second, EPOLL_CTL_DEL, added ? second : first) != 0;
    }
    need(pthread_join(other, NULL) == 0);
    show("bad", bad);
}

static void *closer(void *fd)
{
    pthread_barrier_wait(&both);
    close((int)(long)fd);
    return NULL;
}

/* A set closed while another thread waits in it: the wait goes on to its event or its end, and the other set lives. */
static void closed_while_waited_for(void)
{
    long bad = 0;
    section("closed while waited for");
    for (int round = 0; round < 200; round++) {
        pthread_t other;
        struct epoll_event found;
        int set = epoll_create1(0);
        need(set != -1 && control(set, EPOLL_CTL_ADD, event) == 0 && control(second, EPOLL_CTL_ADD, set) == 0);
        need(pthread_create(&other, NULL, closer, (void *)(long)set) == 0);
        pthread_barrier_wait(&both);
        int got = epoll_wait(set, &found, 1, 2);
        bad += got != 0 && !(got == -1 && errno == EBADF);
        need(pthread_join(other, NULL) == 0);
        bad += !ring() || ready(second) != 0;
        quiet();
    }
    show("bad", bad);
}

/* A watch that fires once fires in one of two processes that share the set, and again only once it is set again. */
static int takes_one(void *unused)
{
    (void)unused;
    struct epoll_event found;
    return epoll_wait(first, &found, 1, 0);
}

static void fires_once(void)
{
    long bad = 0;
    section("once, in two processes");
    struct epoll_event wish = { .events = EPOLLIN | EPOLLONESHOT };
    need(epoll_ctl(first, EPOLL_CTL_ADD, event, &wish) == 0 && ring());
    for (int round = 0; round < 40; round++) {
        pid_t one = spawn(takes_one, NULL), two = spawn(takes_one, NULL);
        int status_one = reap(one), status_two = reap(two);
        need(WIFEXITED(status_one) && WIFEXITED(status_two));
        bad += WEXITSTATUS(status_one) + WEXITSTATUS(status_two) != 1;
        bad += epoll_ctl(first, EPOLL_CTL_MOD, event, &wish) != 0;
    }
    show("bad", bad);
}

int main(void)
{
    need((first = epoll_create1(0)) != -1 && (second = epoll_create1(0)) != -1 && (event = eventfd(0, 0)) != -1);
    need(pthread_barrier_init(&both, NULL, 2) == 0);
    removed_while_added();
    circles();
    closed_while_waited_for();
    fires_once();
    return 0;
}
