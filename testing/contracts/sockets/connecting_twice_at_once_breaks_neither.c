/*
 * connect(2), unix(7): two threads connect one stream socket to two listeners at once. One of them is told EISCONN, and
 * the listener it asked has no connection to accept.
 * contract: timeout=30
 */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/un.h>

#define ROUNDS 1500

static struct sockaddr_un names[2];
static int client, listeners[2], outcome[2];
static pthread_barrier_t ready, done;
static volatile int over;

static void *connect_to(void *which)
{
    long number = (long)which;
    for (;;) {
        pthread_barrier_wait(&ready);
        if (over)
            return NULL;
        outcome[number] = connect(client, (struct sockaddr *)&names[number], sizeof names[number]) ? errno : 0;
        pthread_barrier_wait(&done);
    }
}

int main(void)
{
    pthread_t threads[2];
    int once = 0, alive = 0, refused = 0, ghosts = 0;
    scratch();
    pthread_barrier_init(&ready, NULL, 3);
    pthread_barrier_init(&done, NULL, 3);
    for (long at = 0; at < 2; at++) {
        names[at].sun_family = AF_UNIX;
        snprintf(names[at].sun_path, sizeof names[at].sun_path, "listener%ld", at);
        listeners[at] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        need(bind(listeners[at], (struct sockaddr *)&names[at], sizeof names[at]) == 0);
        need(listen(listeners[at], 8) == 0);
        need(pthread_create(&threads[at], NULL, connect_to, (void *)at) == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        need(client != -1);
        int taken[2] = { -1, -1 };
        pthread_barrier_wait(&ready);
        for (int look = 0; look < 20; look++)
            for (int at = 0; at < 2; at++)
                if (taken[at] == -1)
                    taken[at] = accept(listeners[at], NULL, NULL);
        pthread_barrier_wait(&done);
        int winner = outcome[0] == 0 ? 0 : 1;
        once += (outcome[0] == 0) + (outcome[1] == 0) == 1;
        refused += outcome[!winner] == EISCONN;
        if (taken[winner] == -1)
            taken[winner] = accept(listeners[winner], NULL, NULL);
        if (taken[!winner] != -1 || (taken[!winner] = accept(listeners[!winner], NULL, NULL)) != -1) {
            ghosts++;
            close(taken[!winner]);
        }
        char byte = 0;
        alive += write(taken[winner], "x", 1) == 1 && read(client, &byte, 1) == 1 && byte == 'x';
        close(taken[winner]);
        close(client);
    }
    over = 1;
    pthread_barrier_wait(&ready);
    check(once == ROUNDS, "each round one call connects");
    check(refused == ROUNDS, "each round the other is told EISCONN");
    check(ghosts == 0, "no connection that was refused is accepted");
    check(alive == ROUNDS, "each round the connection works");
    return 0;
}
