/*
 * contract: timeout=60
 * execve(2): a program with hundreds of thousands of arguments is executed or refused (E2BIG, ENOMEM), also when
 * hardly any memory is free; the system goes on.
 */
#include "../contract.h"
#include <sys/resource.h>
#include <sys/sysinfo.h>

#define WORDS 600000
#define LEFT (20UL << 20)

static int fills(void *ready)
{
    struct sysinfo figures;
    int *fds = ready;
    for (;;) {
        need(sysinfo(&figures) == 0);
        unsigned long unused = figures.freeram * figures.mem_unit;
        if (unused <= LEFT)
            break;
        size_t bytes = (unused - LEFT < 4UL << 20 ? unused - LEFT : 4UL << 20) & -PAGE;
        if (bytes == 0)
            break;
        memset(fresh_pages(bytes / PAGE), 1, bytes);
    }
    need(write(fds[1], "x", 1) == 1);
    for (;;)
        pause();
}

static int executes(void *arguments)
{
    struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
    need(setrlimit(RLIMIT_STACK, &unlimited) == 0);
    execve("/bin/true", arguments, (char *[]){ NULL });
    return 0;
}

int main(void)
{
    static char *arguments[WORDS + 1];
    char byte;
    int ready[2];
    for (int at = 0; at < WORDS; at++)
        arguments[at] = at ? "" : "true";
    in_child(executes, arguments);
    need(pipe(ready) == 0);
    pid_t full = spawn(fills, ready);
    close(ready[1]);
    if (read(ready[0], &byte, 1) == 1)
        for (int round = 0; round < 3; round++) {
            pid_t two[2] = { spawn(executes, arguments), spawn(executes, arguments) };
            reap(two[0]);
            reap(two[1]);
        }
    kill(full, SIGKILL);
    reap(full);
    say("the system goes on");
    return 0;
}
