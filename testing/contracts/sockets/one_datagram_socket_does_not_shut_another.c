/* shutdown(2), unix(7): a datagram socket that is shut for sending shuts only itself: the peer that it connected to
 * still hears others. A receiver that is closed, or a backlog that grows, lets those go on that wait for room. */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un address = { .sun_family = AF_UNIX };

static int bound(int type, const char *name)
{
    int fd = socket(AF_UNIX, type, 0);
    strcpy(address.sun_path, name);
    need(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static int connected(int type)
{
    int fd = socket(AF_UNIX, type, 0);
    need(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Runs `wait` in a thread, `event` once it sleeps, and says how the call that waited came out. */
static int (*waiting)(void);
static volatile int result, error, over;

static void *wait_there(void *unused)
{
    (void)unused;
    result = waiting();
    error = errno;
    over = 1;
    return NULL;
}

static void ends_after(int (*wait)(void), void (*event)(void))
{
    pthread_t thread;
    waiting = wait, over = 0;
    need(pthread_create(&thread, NULL, wait_there, NULL) == 0);
    sleep_ms(50);
    check(!over, "it waits");
    event();
    for (int i = 0; i < 2000 && !over; i++)
        sleep_ms(1);
    if (check(over, "it goes on"))
        say("it returned %d, %s", result, result < 0 ? errno_name(error) : "no error");
}

static int receiver, sender, listener;

static int send_one(void) { return (int)send(sender, "x", 1, MSG_NOSIGNAL); }
static void close_receiver(void) { need(close(receiver) == 0); }
static int connect_one(void)
{
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address);
}
static void grow_backlog(void) { need(listen(listener, 4) == 0); }

int main(void)
{
    char byte;
    scratch();
    section("shut for sending");
    receiver = bound(SOCK_DGRAM, "receiver");
    sender = connected(SOCK_DGRAM);
    int other = connected(SOCK_DGRAM), loose = socket(AF_UNIX, SOCK_DGRAM, 0);
    OUTCOME(shutdown(sender, SHUT_WR));
    RESULT(send(sender, "x", 1, MSG_NOSIGNAL));
    RESULT(send(other, "x", 1, MSG_NOSIGNAL));
    RESULT(recv(receiver, &byte, 1, MSG_DONTWAIT));
    RESULT(recv(receiver, &byte, 1, MSG_DONTWAIT));
    OUTCOME(shutdown(other, SHUT_RDWR));
    RESULT(sendto(loose, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof address));
    RESULT(sendto(other, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof address));
    RESULT(recv(receiver, &byte, 1, MSG_DONTWAIT));

    section("a full receiver is closed");
    sender = connected(SOCK_DGRAM);
    while (send(sender, "x", 1, MSG_DONTWAIT) == 1)
        continue;
    ends_after(send_one, close_receiver);

    section("a full backlog grows");
    listener = bound(SOCK_STREAM, "listener");
    need(listen(listener, 0) == 0 && connect_one() == 0);
    ends_after(connect_one, grow_backlog);
    return 0;
}
