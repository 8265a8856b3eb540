/*
 * sched(7): a process that never enters the kernel is preempted, so a sleeper on the same CPU wakes in time and
 * signals arrive.
 */
#include "../contract.h"

static int spins(void *unused)
{
    (void)unused;
    for (volatile unsigned long i = 0;; i++)
        ;
    return 0;
}

int main(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0);
    pid_t children[3];
    for (int i = 0; i < 3; i++)
        children[i] = spawn(spins, NULL);
    long long start = elapsed_ms();
    for (int i = 0; i < 10; i++)
        sleep_ms(5);
    check(elapsed_ms() - start < 4000, "ten short sleeps beside three busy loops end soon");
    for (int i = 0; i < 3; i++) {
        kill(children[i], SIGTERM);
        show_status("busy loop", reap(children[i]));
    }
    return 0;
}
