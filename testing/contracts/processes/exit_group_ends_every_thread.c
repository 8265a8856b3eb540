/* exit_group(2), _exit(2): exit ends all threads with one status; a thread's own exit leaves the others running. */
#include "../contract.h"

static volatile int steps;

static void *long_lived(void *unused)
{
    sleep_ms(60);
    steps = 1;
    syscall(SYS_exit_group, 12);
    return unused;
}

static int leader_leaves_first(void *unused)
{
    (void)unused;
    pthread_t thread;
    need(pthread_create(&thread, NULL, long_lived, NULL) == 0);
    syscall(SYS_exit, 5);
    return 0;
}

static void *stuck(void *unused) { for (;;) pause(); return unused; }
static int others_are_stuck(void *unused)
{
    (void)unused;
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        need(pthread_create(&thread, NULL, stuck, NULL) == 0);
    return 300 + 33;
}

static void *segfaults(void *unused)
{
    *(volatile int *)bad_pointer() = 1;
    return unused;
}
static int one_crashes(void *unused)
{
    (void)unused;
    pthread_t thread;
    need(pthread_create(&thread, NULL, segfaults, NULL) == 0);
    for (;;)
        pause();
}

int main(void)
{
    show_status("leader left first", in_child(leader_leaves_first, NULL));
    show_status("others were stuck", in_child(others_are_stuck, NULL));
    show_status("one crashed", in_child(one_crashes, NULL));
    return 0;
}
