/*
 * sigaction(2): si_code tells kill, tgkill, sigqueue, timer, fault kinds and child events apart, with their
 * details.
 */
#include "../contract.h"

static volatile sig_atomic_t code, number_seen, pid_right, value;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    number_seen = number;
    code = info->si_code;
    pid_right = info->si_pid == getpid();
    value = info->si_value.sival_int;
}

static void tell(const char *what)
{
    say("%s: %s code %d, from this process %d", what, signal_name(number_seen), (int)code, (int)pid_right);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    int numbers[] = { SIGUSR1, SIGALRM, SIGCHLD };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        need(sigaction(numbers[i], &action, NULL) == 0);
    kill(getpid(), SIGUSR1);
    tell("kill");
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
    tell("tgkill");
    sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 77 });
    tell("sigqueue");
    show("value", value);
    struct itimerval soon = { .it_value = { 0, 1000 } };
    number_seen = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    while (!number_seen)
        sleep_ms(1);
    say("setitimer: %s code %d", signal_name(number_seen), (int)code);
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    reap(child);
    say("child: %s code %d", signal_name(number_seen), (int)code);
    siginfo_t forged = { .si_code = 0 };
    RESULT(syscall(SYS_rt_sigqueueinfo, 1, SIGUSR1, &forged));
    return 0;
}
