/*
 * signal(7): with SA_RESTART read, wait and flock go on after a handler; without it, or for sleep, poll and pause,
 * EINTR.
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/select.h>

static volatile sig_atomic_t count;
static int ends[2];
static void handler(int number) { (void)number; count++; }

static int pester(void *unused)
{
    (void)unused;
    sleep_ms(40);
    kill(getppid(), SIGUSR1);
    sleep_ms(40);
    return write(ends[1], "x", 1) != 1;
}

#define TRY(call)                                                       \
    do {                                                                \
        pid_t child = spawn(pester, NULL);                              \
        count = 0;                                                      \
        RESULT(call);                                                   \
        while (waitpid(child, NULL, 0) == -1 && errno == EINTR)         \
            ;                                                           \
        char drop[8];                                                   \
        if (read(ends[0], drop, sizeof drop) < 0)                       \
            say("the pipe was empty");                                  \
        show("signals", count);                                         \
    } while (0)

static void all(const char *title, int flags)
{
    struct timespec long_time = { 3, 0 };
    struct pollfd wait = { ends[0], POLLIN, 0 };
    struct epoll_event event;
    int status, epoll = epoll_create1(0);
    char byte;
    section(title);
    catch_signal(SIGUSR1, handler, flags);
    fcntl(ends[0], F_SETFL, 0);
    pid_t child = spawn(pester, NULL);
    count = 0;
    RESULT(read(ends[0], &byte, 1));
    while (waitpid(child, NULL, 0) == -1 && errno == EINTR)
        ;
    show("signals", count);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (flags == 0)
        RESULT(read(ends[0], &byte, 1));
    child = spawn(pester, NULL);
    errno = 0;
    say("wait: %s", waitpid(child, &status, 0) == child ? "the child" : errno_name(errno));
    while (waitpid(child, NULL, 0) == -1 && errno == EINTR)
        ;
    RESULT(read(ends[0], &byte, 1));
    TRY(nanosleep(&long_time, NULL));
    TRY(poll(&wait, 0, 3000));
    TRY(pause());
    TRY(epoll_wait(epoll, &event, 1, 3000));
    TRY(select(0, NULL, NULL, NULL, &(struct timeval){ 3, 0 }));
    close(epoll);
}

int main(void)
{
    need(pipe(ends) == 0);
    all("without SA_RESTART", 0);
    all("with SA_RESTART", SA_RESTART);
    return 0;
}
