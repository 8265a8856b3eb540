/* epoll_wait(2): epoll_pwait unblocks signals only while waiting, so a pending one interrupts it at once. */
#include "../contract.h"
#include <sys/epoll.h>

static volatile sig_atomic_t count;
static void note(int number) { (void)number; count++; }

int main(void)
{
    int epoll = epoll_create1(0);
    struct epoll_event got;
    sigset_t block, none;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    catch_signal(SIGUSR1, note, 0);
    sigprocmask(SIG_BLOCK, &block, NULL);
    raise(SIGUSR1);
    RESULT(epoll_wait(epoll, &got, 1, 10));
    show("handled", count);
    RESULT(epoll_pwait(epoll, &got, 1, 3000, &none));
    show("handled", count);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    show("blocked again", sigismember(&now, SIGUSR1));
    RESULT(epoll_pwait(epoll, &got, 1, 10, &none));
    RESULT(syscall(SYS_epoll_pwait, epoll, &got, 1, 0, &none, 4));
    return 0;
}
