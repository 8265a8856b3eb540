/* fork(2): only the calling thread exists in the child, with its own thread-local data, and it becomes the leader. */
#include "../contract.h"

static __thread int mine;

static int threads_now(void)
{
    char text[2048];
    get_file("/proc/self/status", text, sizeof text);
    char *line = strstr(text, "\nThreads:");
    return line ? atoi(line + 9) : -1;
}

static void *idle(void *unused) { for (;;) pause(); return unused; }

static void *forks(void *status)
{
    mine = 33;
    pid_t child = fork();
    if (child == 0) {
        say("child: threads %d, leader %d, own data %d", threads_now(), getpid() == (int)syscall(SYS_gettid), mine);
        _exit(mine);
    }
    *(int *)status = reap(child);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int status = -1;
    for (int i = 0; i < 3; i++)
        need(pthread_create(&thread, NULL, idle, NULL) == 0);
    need(pthread_create(&thread, NULL, forks, &status) == 0 && pthread_join(thread, NULL) == 0);
    show_status("child", status);
    for (int i = 0; i < 400 && threads_now() != 4; i++)
        sleep_ms(1);
    show("threads here", threads_now());
    return 0;
}
