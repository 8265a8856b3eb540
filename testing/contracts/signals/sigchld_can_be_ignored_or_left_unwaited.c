/* wait(2), sigaction(2): ignoring SIGCHLD or SA_NOCLDWAIT reaps children by itself; SA_NOCLDSTOP hides stops. */
#include "../contract.h"

static volatile sig_atomic_t count, last_code;
static void note(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    count++;
    last_code = info->si_code;
}

static int quit(void *unused) { (void)unused; return 4; }
static int sleeper(void *unused) { (void)unused; for (;;) pause(); return 0; }

static void handle(int flags)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO | flags };
    need(sigaction(SIGCHLD, &action, NULL) == 0);
    count = 0;
}

int main(void)
{
    int status;
    signal(SIGCHLD, SIG_IGN);
    pid_t child = spawn(quit, NULL);
    RESULT(waitpid(child, &status, 0));
    handle(SA_NOCLDWAIT);
    child = spawn(quit, NULL);
    pid_t got;
    while ((got = waitpid(child, &status, 0)) == -1 && errno == EINTR)
        ;
    say("SA_NOCLDWAIT: waited %s, signals %d", got == -1 ? errno_name(errno) : "a child", (int)count);
    handle(0);
    child = spawn(sleeper, NULL);
    kill(child, SIGSTOP);
    while (waitpid(child, &status, WUNTRACED) == -1)
        ;
    for (int i = 0; i < 400 && !count; i++)
        sleep_ms(5); /* The stop can be waited for a moment before its signal is sent. */
    say("stop: signals %d code %d", (int)count, (int)last_code);
    handle(SA_NOCLDSTOP);
    kill(child, SIGCONT);
    while (waitpid(child, &status, WCONTINUED) == -1)
        ;
    kill(child, SIGSTOP);
    while (waitpid(child, &status, WUNTRACED) == -1)
        ;
    sleep_ms(30);
    say("SA_NOCLDSTOP: signals %d", (int)count);
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) == -1)
        ;
    say("end: signals %d code %d", (int)count, (int)last_code);
    return 0;
}
