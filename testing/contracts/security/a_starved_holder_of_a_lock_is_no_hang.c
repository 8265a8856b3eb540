/*
 * sched(7), SCHED_IDLE; write(2): an ordinary user can hold a file's lock for as long as he likes: a write by a thread
 * that hardly gets the processor. Who waits for it waits; the system goes on.
 * contract: timeout=60
 */
#include "security.h"

#define HOGS 48
#define BYTES (24UL << 20)
#define PATIENCE "/proc/sys/kernel/hung_task_timeout_secs"

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0);
}

static volatile long *writes;

/* Always in the midst of a write to the file. */
static int slow_writer(void *unused)
{
    char *bytes = malloc(BYTES);
    int fd = open("file", O_RDWR);
    struct sched_param none = { 0 };
    need(bytes && fd != -1);
    memset(bytes, 1, BYTES);
    pin(0);
    need(syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &none) == 0);
    for (;; ++*writes)
        need(pwrite(fd, bytes, BYTES, 0) == (ssize_t)BYTES);
    return unused != NULL;
}

static int hog(void *unused)
{
    pin(0);
    for (;;)
        ;
    return unused != NULL;
}

static int waiter(void *unused)
{
    int fd = open("file", O_RDWR);
    need(fd != -1);
    pin(1);
    for (;;)
        need(pwrite(fd, "x", 1, 0) == 1);
    return unused != NULL;
}

static int attack(void *unused)
{
    pid_t hogs[HOGS], holder, waits;
    writes = shared_page();
    holder = spawn(slow_writer, NULL);
    for (int i = 0; *writes < 2 && i < 1000; i++)
        sleep_ms(10);
    check(*writes >= 2, "the holder writes");
    for (int i = 0; i < HOGS; i++)
        hogs[i] = spawn(hog, NULL);
    waits = spawn(waiter, NULL);
    sleep_ms(30000);
    for (int i = 0; i < HOGS; i++)
        kill(hogs[i], SIGKILL);
    kill(holder, SIGKILL);
    kill(waits, SIGKILL);
    for (int i = 0; i < HOGS; i++)
        reap(hogs[i]);
    show_status("the holder", reap(holder));
    show_status("the waiter", reap(waits));
    return unused != NULL;
}

static void set_patience(const char *seconds)
{
    int fd = open(PATIENCE, O_WRONLY);
    need(fd != -1 && write(fd, seconds, strlen(seconds)) > 0);
    close(fd);
}

int main(void)
{
    char before[32];
    scratch();
    put_file("file", "", 0666);
    /* Where a watchdog looks at blocked threads, it is to be quick about it. */
    int watched = get_file(PATIENCE, before, sizeof before) > 0;
    if (watched)
        set_patience("6\n");
    show_status("the attack", as_nobody(attack, NULL));
    if (watched)
        set_patience(before);
    return 0;
}
