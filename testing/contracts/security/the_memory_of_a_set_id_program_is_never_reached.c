/*
 * ptrace(2), "Ptrace access mode checking"; execve(2): who may write to a process before it executes a set-user-ID
 * program reaches nothing of that program, also not while the execution is under way.
 */
#include "security.h"

#define ROUNDS 60
/* Closed by the execution: the more there is to do, the longer it is under way. */
#define OPEN_FILES 400

static char area[4 * PAGE];

static int untouched(void)
{
    for (size_t at = 0; at < sizeof area; at++)
        if (area[at])
            return 0;
    return 1;
}

static int attempt(void *unused)
{
    (void)unused;
    int overwritten = 0, refused = 0;
    for (int at = 0; at < OPEN_FILES; at++)
        need(fcntl(0, F_DUPFD_CLOEXEC, 100) != -1);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        need(child != -1);
        if (child == 0) {
            execl("./program", "program", "victim", NULL);
            _exit(99);
        }
        char bytes[16] = "overwritten";
        struct iovec from = { bytes, sizeof bytes }, to = { area + PAGE, sizeof bytes };
        while (process_vm_writev(child, &from, 1, &to, 1, 0) > 0)
            ;
        refused += errno == EPERM || errno == ESRCH;
        int status = reap(child);
        need(WIFEXITED(status) && WEXITSTATUS(status) != 99);
        overwritten += WEXITSTATUS(status);
    }
    show("refused in the end", refused);
    show("programs overwritten", overwritten);
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return !untouched();
    need((uintptr_t)area < 0x10000000);
    scratch();
    copy_self("program", 0, 0, 04755);
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
