/*
 * contract: timeout=60
 * open(2), proc(5), file-max: the descriptions that all processes have open are limited by memory. A user without
 * privilege is refused beyond that with ENFILE, however many processes he has; root is not.
 */
#include "../security/security.h"
#include <sys/eventfd.h>
#include <sys/resource.h>

enum { PROCESSES = 25 };

/* Takes descriptions until one is refused, tells of the error, and keeps what it has. */
static void takes(int told)
{
    while (eventfd(0, 0) != -1)
        ;
    int error = errno;
    need(write(told, &error, sizeof error) == sizeof error);
    for (;;)
        pause();
}

static int attack(void *unused)
{
    struct rlimit limit = { 4096, 4096 };
    int told[2], error, beyond = 0;
    (void)unused;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0 && pipe(told) == 0);
    for (int one = 0; one < PROCESSES; one++) {
        pid_t child = fork();
        need(child != -1);
        if (child == 0)
            takes(told[1]);
        need(read(told[0], &error, sizeof error) == sizeof error);
        beyond += error == ENFILE;
    }
    check(beyond > 0, "a user is refused before he has 100,000");
    OUTCOME(open("/dev/null", O_RDONLY));
    return 0;
}

static int sweeps(void *unused)
{
    (void)unused;
    return kill(-1, SIGKILL) == -1;
}

int main(void)
{
    show_status("the user", as_nobody(attack, NULL));
    OUTCOME(open("/dev/null", O_RDONLY));
    as_nobody(sweeps, NULL);
    return 0;
}
