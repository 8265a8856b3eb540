/*
 * contract: timeout=60
 * connect(2), listen(2): of two threads that connect one socket, one is told EISCONN; a socket that listens does not
 * connect, one that is connected does not listen. What one of them took does not replace what the other has.
 */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/un.h>

enum { ROUNDS = 2000 };

struct name { struct sockaddr_un address; socklen_t length; };

static int bound(struct name *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    name->address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    name->length = sizeof name->address;
    need(fd != -1 && bind(fd, (void *)&name->address, sizeof name->address.sun_family) == 0);
    need(getsockname(fd, (void *)&name->address, &name->length) == 0);
    return fd;
}

static struct name servers[2];
static pthread_barrier_t start;
static int listeners[2], wanted;

static void *connects(void *server)
{
    struct name *name = server;
    pthread_barrier_wait(&start);
    return (void *)(long)(connect(wanted, (void *)&name->address, name->length) == 0);
}

static void *listens(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    return (void *)(long)(listen(wanted, 5) == 0);
}

/* In how many rounds both calls succeeded. */
static int both_succeed(void *(*other)(void *))
{
    int both = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[2];
        struct name own;
        void *first, *second;
        wanted = bound(&own);
        need(pthread_create(&threads[0], NULL, connects, &servers[0]) == 0);
        need(pthread_create(&threads[1], NULL, other, &servers[1]) == 0);
        need(pthread_join(threads[0], &first) == 0 && pthread_join(threads[1], &second) == 0);
        both += first && second;
        close(wanted);
        for (int one = 0, got; one < 2; one++)
            while ((got = accept(listeners[one], NULL, NULL)) != -1)
                close(got);
    }
    return both;
}

int main(void)
{
    for (int one = 0; one < 2; one++) {
        listeners[one] = bound(&servers[one]);
        need(listen(listeners[one], 8) == 0);
    }
    need(pthread_barrier_init(&start, NULL, 2) == 0);
    show("connected twice", both_succeed(connects));
    show("connected and listening", both_succeed(listens));
    return 0;
}
