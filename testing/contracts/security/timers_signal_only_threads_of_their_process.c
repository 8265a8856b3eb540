/*
 * timer_create(2), SIGEV_THREAD_ID: the thread must be one of the caller's process.
 */
#include "security.h"

static int try(int notify, int number, pid_t thread)
{
    struct sigevent event = { .sigev_notify = notify, .sigev_signo = number };
    ((int *)&event)[4] = thread;
    int id;
    int outcome = syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id);
    if (outcome == 0)
        syscall(SYS_timer_delete, id);
    return outcome;
}

static int attempt(void *victim)
{
    pid_t pid = *(pid_t *)victim;
    OUTCOME(try(SIGEV_THREAD_ID, SIGUSR1, pid));
    OUTCOME(try(SIGEV_THREAD_ID, SIGUSR1, 1));
    OUTCOME(try(SIGEV_THREAD_ID, SIGUSR1, getppid()));
    OUTCOME(try(SIGEV_THREAD_ID, SIGUSR1, 0));
    OUTCOME(try(SIGEV_THREAD_ID, SIGUSR1, -1));
    OUTCOME(try(SIGEV_THREAD_ID, SIGUSR1, gettid()));
    OUTCOME(try(SIGEV_THREAD_ID, 65, gettid()));
    OUTCOME(try(SIGEV_THREAD_ID, 0, gettid()));
    OUTCOME(try(SIGEV_SIGNAL, 65, 0));
    OUTCOME(try(77, SIGUSR1, gettid()));
    return 0;
}

static void user(void) { become_nobody(); }

int main(void)
{
    pid_t victim = start_victim(NULL);
    as_nobody(attempt, &victim);
    end_victim("root's", victim);
    victim = start_victim(user);
    as_nobody(attempt, &victim);
    end_victim("one's own", victim);
    return 0;
}
