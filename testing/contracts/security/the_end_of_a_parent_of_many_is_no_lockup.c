/*
 * exit(3), setpgid(2): the children of a process that ends get another parent, and groups that this orphans are hung
 * up. With as many children as an ordinary user may have, its processor is back for others soon.
 * contract: timeout=60
 */
#include "security.h"

enum { MOST = 1900, LONGEST_MS = 1000 };

static volatile struct { int children, done; long long worst; } *shared;

static void to_first_processor(void)
{
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    need(sched_setaffinity(0, sizeof first, &first) == 0);
}

/* How long the processor was not to be had for one that goes before all others. */
static int beats(void *unused)
{
    struct sched_param before_others = { .sched_priority = 50 };
    (void)unused;
    to_first_processor();
    /* musl's own function does nothing. */
    need(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &before_others) == 0);
    for (long long last = elapsed_ms(); !shared->done;) {
        sleep_ms(1);
        long long now = elapsed_ms();
        if (now - last > shared->worst)
            shared->worst = now - last;
        last = now;
    }
    return 0;
}

static int attack(void *unused)
{
    (void)unused;
    to_first_processor();
    for (pid_t child; shared->children < MOST && (child = fork()) != -1; shared->children++)
        if (child == 0)
            for (;;)
                pause();
    /* What counts is the end. */
    shared->worst = 0;
    return 0;
}

static int sweeps(void *unused)
{
    (void)unused;
    return kill(-1, SIGKILL) == -1;
}

int main(void)
{
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(shared != MAP_FAILED);
    pid_t beater = spawn(beats, NULL);
    show_status("the parent of many", as_nobody(attack, NULL));
    sleep_ms(50);
    check(shared->children > 1500, "it had more than 1,500 children");
    check(shared->worst < LONGEST_MS, "its processor was back within a second");
    shared->done = 1;
    reap(beater);
    as_nobody(sweeps, NULL);
    return 0;
}
