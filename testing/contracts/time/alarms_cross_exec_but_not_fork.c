/* alarm(2), execve(2): a pending alarm goes on after exec and is not inherited by a child. */
#include "../contract.h"

static void note(int number) { (void)number; }

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        catch_signal(SIGALRM, note, 0);
        long long start = elapsed_ms();
        RESULT(pause());
        check(elapsed_ms() - start < 3000, "the alarm set before exec came");
        return 0;
    }
    alarm(100);
    pid_t child = fork();
    if (child == 0)
        _exit(alarm(0) ? 1 : 0);
    show_status("child had none", reap(child));
    show("ours goes on", alarm(0) >= 98);
    struct itimerval soon = { .it_value = { 0, 400000 } };
    need(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    signal(SIGALRM, SIG_IGN);
    execl("/proc/self/exe", "self", "again", NULL);
    return 1;
}
