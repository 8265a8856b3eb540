/*
 * unix(7), autobind: however many sockets have a name that the kernel chose, the next gets one as fast, and no other
 * program waits for that.
 * contract: timeout=60
 */
#include "../contract.h"
#include <sys/resource.h>
#include <sys/socket.h>

#define PROCESSES 10
#define EACH 4000

static int bind_many(void *ready)
{
    struct rlimit limit = { 4096, 4096 };
    sa_family_t family = AF_UNIX;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int bound = 0;
    for (int at = 0; at < EACH; at++) {
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        need(fd != -1);
        bound += bind(fd, (void *)&family, sizeof family) == 0;
    }
    need(write(*(int *)ready, bound == EACH ? "y" : "n", 1) == 1);
    for (;;)
        pause();
}

int main(void)
{
    int ready[2], all = 0;
    pid_t children[PROCESSES];
    need(pipe(ready) == 0);
    for (int at = 0; at < PROCESSES; at++)
        children[at] = spawn(bind_many, &ready[1]);
    for (int at = 0; at < PROCESSES; at++) {
        char byte;
        need(read(ready[0], &byte, 1) == 1);
        all += byte == 'y';
    }
    show("processes all of whose sockets have a name", all);
    for (int at = 0; at < PROCESSES; at++)
        kill(children[at], SIGKILL);
    for (int at = 0; at < PROCESSES; at++)
        reap(children[at]);
    return 0;
}
