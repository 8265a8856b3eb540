/*
 * execve(2), mmap(2): a program file that is written, cut and executed again and again runs with what it held when it
 * was executed, its private pages never reach the file, and a file that is executed cannot be written.
 * contract: timeout=60
 */
#include "../contract.h"
#include <sys/prctl.h>

#define ROUNDS 60

static char data[3 * 4096] = "data begins";

static void copy_self(const char *to)
{
    static char bytes[1 << 16];
    int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ssize_t got;
    need(in != -1 && out != -1);
    while ((got = read(in, bytes, sizeof bytes)) > 0)
        need(write(out, bytes, got) == got);
    close(in), close(out);
}

static unsigned long sum_of(const char *path)
{
    static unsigned char bytes[1 << 16];
    int fd = open(path, O_RDONLY);
    unsigned long sum = 5381;
    ssize_t got;
    need(fd != -1);
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < got; at++)
            sum = sum * 33 + bytes[at];
    close(fd);
    return sum;
}

/* The program that is executed: writes to all of its own pages it may, and looks whether its file changed. */
static int program(const char *path)
{
    unsigned long before = sum_of(path);
    memset(data, 'x', sizeof data);
    int writable = open(path, O_WRONLY);
    if (writable != -1 || errno != ETXTBSY)
        return 2;
    if (truncate(path, 10) != -1 || errno != ETXTBSY)
        return 3;
    return sum_of(path) == before ? 0 : 4;
}

static volatile int *stop;

/* Tries to write to the file while it is executed; between executions it may append. */
static int writer(void *unused)
{
    while (!*stop) {
        int fd = open("program", O_WRONLY | O_APPEND);
        if (fd != -1) {
            if (write(fd, "tail", 4) != 4)
                return 1;
            close(fd);
        } else if (errno != ETXTBSY && errno != ENOENT)
            return 2;
        sched_yield();
    }
    return unused != NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return program(argv[1]);
    scratch();
    stop = shared_page();
    copy_self("program");
    pid_t other = spawn(writer, NULL);
    int failed = 0, busy = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 10 == 9) {
            copy_self("fresh");
            need(rename("fresh", "program") == 0);
        }
        pid_t child = fork();
        need(child != -1);
        if (child == 0) {
            execl("./program", "program", "./program", NULL);
            _exit(errno == ETXTBSY ? 100 : 101);
        }
        int status = reap(child);
        busy += WIFEXITED(status) && WEXITSTATUS(status) == 100;
        failed += !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 100);
    }
    *stop = 1;
    show_status("writer", reap(other));
    show("failed", failed);
    check(busy < ROUNDS, "some were executed");
    return 0;
}
