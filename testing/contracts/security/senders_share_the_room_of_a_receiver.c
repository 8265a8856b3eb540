/*
 * unix(7), net.unix.max_dgram_qlen: two senders fill a datagram socket at the same time, and it takes as many packets
 * as from one.
 * contract: timeout=30
 */
#include "security.h"
#include <sys/socket.h>
#include <sys/un.h>

#define ROUNDS 1500

static struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0receiver of many" };
static int arrived, taken[2];

/* Waits for the other thread without sleeping: both go on in the same moment. */
static void meet(void)
{
    int turn = (__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST) | 1) + 1;
    while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < turn)
        ;
}

/* Sends until there is no room; how many went. */
static int fill(int sender)
{
    int count = 0;
    while (sendto(sender, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&address, sizeof address) == 1)
        count++;
    return errno == EAGAIN ? count : -1000;
}

static void *send_many(void *which)
{
    int sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    need(sender != -1);
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        taken[(long)which] = fill(sender);
        meet();
        meet();
    }
    return NULL;
}

static int attempt(void *unused)
{
    (void)unused;
    pthread_t other;
    char byte;
    int receiver = socket(AF_UNIX, SOCK_DGRAM, 0), sender = socket(AF_UNIX, SOCK_DGRAM, 0), beyond = 0;
    need(receiver != -1 && sender != -1 && bind(receiver, (struct sockaddr *)&address, sizeof address) == 0);
    int most = fill(sender);
    check(most > 0, "one sender fills it");
    while (recv(receiver, &byte, 1, MSG_DONTWAIT) == 1)
        ;
    need(pthread_create(&other, NULL, send_many, (void *)1) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        taken[0] = fill(sender);
        meet();
        beyond += taken[0] + taken[1] != most;
        while (recv(receiver, &byte, 1, MSG_DONTWAIT) == 1)
            ;
        meet();
    }
    show("rounds in which two put another number in", beyond);
    return 0;
}

int main(void)
{
    need(as_nobody(attempt, NULL) == 0);
    return 0;
}
