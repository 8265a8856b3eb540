/*
 * mq_notify(3): a registration holds for the program that made it; the one it executes is not signalled.
 */
#include "security.h"
#include <mqueue.h>

static int attempt(void *path)
{
    int done[2];
    char number[12];
    need(pipe(done) == 0);
    mqd_t queue = mq_open("/contract", O_RDWR | O_CREAT, 0600, NULL);
    need(queue != (mqd_t)-1);
    pid_t child = fork();
    if (child == 0) {
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
        need(fcntl(queue, F_SETFD, 0) == 0 && mq_notify(queue, &event) == 0);
        snprintf(number, sizeof number, "%d", done[1]);
        if (path)
            execl(path, "program", number, NULL);
        tell(done[1]);
        sleep_ms(200);
        _exit(0);
    }
    await(done[0]);
    need(mq_send(queue, "x", 1, 0) == 0);
    show_status("who registered", reap(child));
    mq_close(queue);
    mq_unlink("/contract");
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        tell(atoi(arguments[1]));
        sleep_ms(200);
        return 0;
    }
    scratch();
    copy_self("program", 0, 0, 04755);
    copy_self("plain", 0, 0, 0755);
    section("no execution");
    as_nobody(attempt, NULL);
    section("a plain program");
    as_nobody(attempt, "./plain");
    section("a set-user-ID program");
    as_nobody(attempt, "./program");
    return 0;
}
