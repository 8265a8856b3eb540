/*
 * contract: timeout=60
 * proc(5): users who read the arguments and the environment of a program with a megabyte of each, many times at once
 * and with hardly any memory free, do not use up the kernel's memory: they are refused or ended, and the system goes
 * on.
 */
#include "../contract.h"
#include <sys/resource.h>
#include <sys/sysinfo.h>

#define WORDS 8
#define LENGTH (120 * 1024)
#define READERS 24
#define OPENED 16
#define LEFT (20UL << 20)

static char program[64];

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

/* A program with long arguments, that waits. */
static int executes(void *words)
{
    struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
    need(setrlimit(RLIMIT_STACK, &unlimited) == 0);
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    execve("/proc/self/exe", words, words);
    return 1;
}

static int reads(void *unused)
{
    static const char *const names[] = { "cmdline", "environ" };
    char name[96], byte;
    (void)unused;
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    for (int at = 0; at < OPENED; at++) {
        snprintf(name, sizeof name, "%s/%s", program, names[at % 2]);
        int fd = open(name, O_RDONLY);
        if (fd == -1 || read(fd, &byte, 1) != 1)
            break;
    }
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1 && arguments[0][0] == 'w')
        for (;;)
            pause();
    static char word[LENGTH + 1];
    static char *words[WORDS + 1];
    memset(word, 'w', LENGTH);
    for (int at = 0; at < WORDS; at++)
        words[at] = word;
    pid_t shown = spawn(executes, words);
    snprintf(program, sizeof program, "/proc/%d", shown);
    int ready[2];
    char byte;
    need(pipe(ready) == 0);
    pid_t full = spawn(fills, ready);
    close(ready[1]);
    if (read(ready[0], &byte, 1) == 1)
        for (int round = 0; round < 3; round++) {
            /* One that is refused reads nothing. */
            for (int at = 0; at < READERS; at++)
                if (fork() == 0)
                    _exit(reads(NULL));
            sleep_ms(1500);
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        }
    kill(full, SIGKILL);
    kill(shown, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    say("the system goes on");
    return 0;
}
