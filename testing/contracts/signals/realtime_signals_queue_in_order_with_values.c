/*
 * signal(7): real-time signals queue, lowest number first, in sending order within one number, each with its
 * value.
 */
#include "../contract.h"

static int order[16], values[16];
static volatile sig_atomic_t count;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    order[count] = number - SIGRTMIN;
    values[count++] = info->si_value.sival_int;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    sigset_t set;
    sigfillset(&action.sa_mask);
    sigemptyset(&set);
    for (int i = 0; i < 3; i++) {
        sigaddset(&set, SIGRTMIN + i);
        need(sigaction(SIGRTMIN + i, &action, NULL) == 0);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 3; i++)
        for (int number = 2; number >= 0; number--)
            need(sigqueue(getpid(), SIGRTMIN + number, (union sigval){ .sival_int = 10 * number + i }) == 0);
    show("before", count);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    for (int i = 0; i < count; i++)
        say("SIGRTMIN+%d value %d", order[i], values[i]);
    RESULT(sigqueue(getpid(), 65, (union sigval){ 0 }));
    RESULT(sigqueue(getpid(), 0, (union sigval){ 0 }));
    return 0;
}
