/*
 * contract: timeout=60
 * execve(2): when two threads of a process execute at the same moment, one program runs, alone, and the process never
 * ends without having run one; set-user-ID programs begin with their own ids whichever thread called.
 */
#include "security.h"

#define ROUNDS 150

static volatile int go;
static const char *program;

static void *executes(void *which)
{
    __atomic_add_fetch(&go, 1, __ATOMIC_SEQ_CST);
    while (go < 3)
        ;
    execl(program, program, "ran", (char *)which, NULL);
    return NULL;
}

static int races(void *unused)
{
    pthread_t threads[2];
    (void)unused;
    go = 0;
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        need(pthread_create(&threads[at], NULL, executes, at ? "one" : "other") == 0);
    while (go < 2)
        ;
    go = 3;
    for (;;)
        pause();
}

static int attempt(void *path)
{
    int ran = 0, ended = 0, strange = 0;
    program = path;
    for (int round = 0; round < ROUNDS; round++) {
        int status = in_child(races, NULL);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 42)
            ran++;
        else if (WIFSIGNALED(status))
            ended++;
        else
            strange++;
    }
    show("programs that ran", ran);
    show("processes killed", ended);
    show("others", strange);
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1 && !strcmp(arguments[1], "ran")) {
        struct stat me;
        need(stat("/proc/self/exe", &me) == 0);
        int right = geteuid() == (me.st_mode & S_ISUID ? me.st_uid : getuid());
        return right && getpid() == syscall(SYS_gettid) ? 42 : 43;
    }
    scratch();
    copy_self("plain", 0, 0, 0755);
    copy_self("set-id", 1000, 1000, 04755);
    as_nobody(attempt, "./plain");
    as_nobody(attempt, "./set-id");
    return 0;
}
