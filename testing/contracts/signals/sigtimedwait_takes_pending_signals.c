/* sigwaitinfo(2): takes a blocked pending signal without its handler, tells its sender, and times out with EAGAIN. */
#include "../contract.h"

static void handler(int number) { say("the handler of %s ran", signal_name(number)); }

int main(void)
{
    sigset_t set;
    siginfo_t info;
    struct timespec none = { 0, 0 }, shortly = { 0, 20000000 };
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    catch_signal(SIGUSR1, handler, 0);
    catch_signal(SIGUSR2, handler, 0);
    RESULT(sigtimedwait(&set, &info, &none));
    RESULT(sigtimedwait(&set, &info, &shortly));
    sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 5 });
    raise(SIGUSR1);
    sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 6 });
    show_text("first", signal_name(sigtimedwait(&set, &info, &none)));
    say("code %d", info.si_code);
    show_text("second", signal_name(sigtimedwait(&set, &info, &none)));
    say("code %d value %d mine %d", info.si_code, info.si_value.sival_int, info.si_pid == getpid());
    show_text("third", signal_name(sigwaitinfo(&set, &info)));
    show("value", info.si_value.sival_int);
    RESULT(sigtimedwait(&set, &info, &none));
    struct timespec wrong = { 0, -1 };
    RESULT(sigtimedwait(&set, &info, &wrong));
    struct itimerval soon = { .it_value = { 0, 20000 } };
    catch_signal(SIGALRM, handler, 0);
    setitimer(ITIMER_REAL, &soon, NULL);
    struct timespec long_time = { 3, 0 };
    RESULT(syscall(SYS_rt_sigtimedwait, &set, &info, &long_time, 8)); /* musl's own would try again. */
    return 0;
}
