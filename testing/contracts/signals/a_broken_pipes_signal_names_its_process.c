/*
 * sigaction(2), pipe(7): SIGPIPE comes from the writing process itself: si_code is SI_USER, si_pid and si_uid are its
 * own. A user's signal does not say that root sent it.
 */
#include "../security/security.h"
#include <sys/socket.h>

static siginfo_t got;

static void note(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    got = *info;
}

static void tell_of(const char *what)
{
    section(what);
    show("si_code", got.si_code);
    check(got.si_pid == getpid(), "si_pid is the writer's");
    show("si_uid", got.si_uid);
    memset(&got, 0, sizeof got);
}

static int writes(void *unused)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    int ends[2];
    (void)unused;
    need(sigaction(SIGPIPE, &action, NULL) == 0 && pipe(ends) == 0);
    close(ends[0]);
    RESULT(write(ends[1], "x", 1));
    tell_of("pipe");
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    close(ends[0]);
    RESULT(send(ends[1], "x", 1, 0));
    tell_of("socket");
    return 0;
}

int main(void)
{
    show_status("the writer", as_nobody(writes, NULL));
    return 0;
}
