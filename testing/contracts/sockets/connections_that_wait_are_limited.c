/*
 * connect(2), ENFILE: connections that were not accepted take memory though no descriptor is left of them. An ordinary
 * user gets so many, whatever the backlogs of his listeners allow, and more once some are gone.
 */
#include "../security/security.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LISTENERS 6

static int listeners[LISTENERS];
static struct sockaddr_un addresses[LISTENERS];
static socklen_t lengths[LISTENERS];

static void listen_at(int number)
{
    struct sockaddr_un *address = &addresses[number];
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path + 1, 60, "wait-%d-%d", getpid(), number);
    lengths[number] = offsetof(struct sockaddr_un, sun_path) + 1 + length;
    listeners[number] = socket(AF_UNIX, SOCK_STREAM, 0);
    need(bind(listeners[number], (void *)address, lengths[number]) == 0 && listen(listeners[number], 4096) == 0);
}

/* A connection of which nothing is left here; 0 or the error. */
static int connect_and_leave(int number)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd == -1)
        return errno;
    int error = connect(fd, (void *)&addresses[number], lengths[number]) ? errno : 0;
    close(fd);
    return error;
}

static int fill(void *unused)
{
    int error = 0;
    long made = 0;
    for (int number = 0; number < LISTENERS; number++) {
        listen_at(number);
        while ((error = connect_and_leave(number)) == 0)
            made++;
        if (error != EAGAIN)
            break;
    }
    say("some thousands: %s", made >= 1000 ? "yes" : "no");
    say("then: %s", error == EAGAIN ? "all backlogs are full" : error == ENFILE ? "ENFILE" : "another error");
    for (int taken = 0; taken < 100; taken++)
        close(accept(listeners[0], NULL, NULL));
    say("after a hundred were accepted and closed: %s", connect_and_leave(0) ? "refused" : "connected");
    return unused != NULL;
}

static void set_most(const char *text)
{
    int fd = open("/proc/sys/fs/file-max", O_WRONLY);
    need(fd != -1 && write(fd, text, strlen(text)) > 0);
    close(fd);
}

int main(void)
{
    char before[64] = "";
    int fd = open("/proc/sys/fs/file-max", O_RDONLY);
    need(fd != -1 && read(fd, before, sizeof before - 1) > 0);
    close(fd);
    set_most("4000\n");
    int status = as_nobody(fill, NULL);
    set_most(before);
    show_status("the user", status);
    return 0;
}
