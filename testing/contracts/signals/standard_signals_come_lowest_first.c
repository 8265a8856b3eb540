/*
 * signal(7): when several signals become deliverable at once their handlers stack; the lowest number is taken
 * first.
 */
#include "../contract.h"

static void note(int number) { say("handler of %s", signal_name(number)); }

int main(void)
{
    int numbers[] = { SIGTERM, SIGUSR2, SIGHUP, SIGALRM, SIGUSR1 };
    sigset_t all, set;
    sigfillset(&all);
    sigemptyset(&set);
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct sigaction action = { .sa_handler = note };
        sigfillset(&action.sa_mask);
        need(sigaction(numbers[i], &action, NULL) == 0);
    }
    section("handlers that block everything run in order");
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        raise(numbers[i]);
    sigprocmask(SIG_SETMASK, &set, NULL);
    section("handlers that block nothing interrupt each other");
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        catch_signal(numbers[i], note, 0);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        raise(numbers[i]);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return 0;
}
