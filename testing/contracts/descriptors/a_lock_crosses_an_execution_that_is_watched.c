/*
 * contract: timeout=60
 * fcntl(2), execve(2): record locks are preserved across an execve. Reading /proc/PID/fd meanwhile, which anyone who
 * may look at the process can do, changes nothing about that.
 */
#include "../contract.h"

enum { ROUNDS = 300 };

/* Holds a lock on the file, tells of it, executes itself when told to. */
static void locks_and_executes(int told, int go)
{
    struct flock lock = { .l_type = F_WRLCK };
    char number[16], byte;
    int file = open("file", O_RDWR);
    need(file != -1 && fcntl(file, F_SETLK, &lock) == 0 && write(told, "!", 1) == 1 && read(go, &byte, 1) == 1);
    snprintf(number, sizeof number, "%d", told);
    execl("/proc/self/exe", "self", number, NULL);
    _exit(99);
}

static void looks(pid_t whom)
{
    static char names[4096];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", whom);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    for (;;) {
        lseek(folder, 0, SEEK_SET);
        syscall(SYS_getdents64, folder, names, sizeof names);
    }
}

/* Whether the lock is still there after the execution. */
static int round_is_kept(void)
{
    struct flock question = { .l_type = F_WRLCK };
    int told[2], go[2];
    char byte;
    need(pipe(told) == 0 && pipe(go) == 0);
    pid_t holder = fork();
    if (holder == 0)
        locks_and_executes(told[1], go[0]);
    need(read(told[0], &byte, 1) == 1);
    pid_t watcher = fork();
    if (watcher == 0)
        looks(holder);
    sleep_ms(1);
    need(write(go[1], "!", 1) == 1 && read(told[0], &byte, 1) == 1);
    int file = open("file", O_RDWR);
    need(file != -1 && fcntl(file, F_GETLK, &question) == 0);
    close(file);
    kill(watcher, SIGKILL);
    kill(holder, SIGKILL);
    reap(watcher);
    reap(holder);
    close(told[0]), close(told[1]), close(go[0]), close(go[1]);
    return question.l_type != F_UNLCK;
}

int main(int count, char **words)
{
    if (count > 1) {
        need(write(atoi(words[1]), "!", 1) == 1);
        pause();
    }
    scratch();
    need(close(open("file", O_CREAT | O_RDWR, 0600)) == 0);
    int lost = 0;
    for (int round = 0; round < ROUNDS; round++)
        lost += !round_is_kept();
    show("locks lost", lost);
    return 0;
}
