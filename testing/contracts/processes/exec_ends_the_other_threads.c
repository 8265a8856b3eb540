/* execve(2): exec from any thread ends all others, and the new program runs under the thread group's pid. */
#include "../contract.h"

static char pid[16];

static void *waits(void *unused) { for (;;) pause(); return unused; }
static void *execs(void *unused)
{
    char *const argv[] = { "self", pid, NULL };
    execve("/proc/self/exe", argv, NULL);
    return unused;
}

static int threads_now(void)
{
    char text[2048];
    get_file("/proc/self/status", text, sizeof text);
    char *line = strstr(text, "\nThreads:");
    return line ? atoi(line + 9) : -1;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        show("same pid", atoi(arguments[1]) == getpid());
        show("leader again", getpid() == (int)syscall(SYS_gettid));
        show("threads", threads_now());
        return 0;
    }
    pthread_t thread;
    snprintf(pid, sizeof pid, "%d", getpid());
    for (int i = 0; i < 3; i++)
        need(pthread_create(&thread, NULL, waits, NULL) == 0);
    show("threads", threads_now());
    need(pthread_create(&thread, NULL, execs, NULL) == 0);
    pause();
    return 1;
}
