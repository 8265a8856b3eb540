/*
 * getrlimit(2), sigqueue(3), timer_create(2): RLIMIT_SIGPENDING bounds the queued signals of a user: sigqueue says
 * EAGAIN beyond it, kill still sets the bit of a standard signal, and a timer that cannot have its entry is not
 * made.
 */
#include "contract.h"
#include <sys/resource.h>

static int user(void *unused)
{
    (void)unused;
    struct rlimit limit = { 3, 3 };
    sigset_t all, pending;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    need(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
    need(setresgid(65533, 65533, 65533) == 0 && setresuid(65533, 65533, 65533) == 0);
    union sigval value = { .sival_int = 1 };
    for (int i = 0; i < 5; i++)
        RESULT(sigqueue(getpid(), 40, value));
    RESULT(sigqueue(getpid(), SIGUSR1, value));
    RESULT(kill(getpid(), SIGUSR2));
    RESULT(kill(getpid(), 41));
    sigpending(&pending);
    static const int numbers[] = { SIGUSR1, SIGUSR2, 40, 41 };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        say("%d pending: %d", numbers[i], sigismember(&pending, numbers[i]));
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = 42 };
    int id;
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
    section("taking some");
    struct timespec now = { 0, 0 };
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, 40);
    for (int i = 0; i < 4; i++)
        RESULT(sigtimedwait(&one, NULL, &now));
    OUTCOME(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
    return 0;
}

int main(void)
{
    show_status("user", in_child(user, NULL));
    return 0;
}
