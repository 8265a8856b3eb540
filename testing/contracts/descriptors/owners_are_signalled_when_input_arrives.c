/* fcntl(2): with O_ASYNC and F_SETOWN a pipe or socket sends SIGIO, or the F_SETSIG signal with its descriptor. */
#include "../contract.h"
#include <sys/socket.h>

int main(void)
{
    int pair[2];
    siginfo_t info;
    sigset_t set;
    struct timespec limit = { 2, 0 }, none = { 0, 0 };
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigaddset(&set, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &set, NULL);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    RESULT(fcntl(pair[0], F_GETOWN));
    RESULT(fcntl(pair[0], F_SETOWN, getpid()));
    show("owner is us", fcntl(pair[0], F_GETOWN) == getpid());
    need(write(pair[1], "x", 1) == 1);
    RESULT(sigtimedwait(&set, &info, &none));
    RESULT(fcntl(pair[0], F_SETFL, O_ASYNC));
    need(write(pair[1], "x", 1) == 1);
    show_text("got", signal_name(sigtimedwait(&set, &info, &limit)));
    RESULT(fcntl(pair[0], F_SETSIG, SIGRTMIN + 3));
    need(write(pair[1], "x", 1) == 1);
    show("our signal", sigtimedwait(&set, &info, &limit) == SIGRTMIN + 3);
    say("descriptor right %d, code %d, readable %d", info.si_fd == pair[0], info.si_code, !!(info.si_band & POLLIN));
    RESULT(fcntl(pair[0], F_SETSIG, 99));
    RESULT(fcntl(pair[0], F_SETOWN, 9999999));
    return 0;
}
