/* getrusage(2), wait4(2): context switches count for threads, processes and children waited for; what wait4 reports of
 * a child includes the children that the child has waited for. */
#include "../contract.h"
#include <sys/resource.h>

/* Linux sums resident pages in batches, so the peak may be short of some: half of what is touched is asked for,
 * in KiB. */
enum { SLEEPS = 5, TOUCHED = 600, RESIDENT = TOUCHED * 4 / 2 };

static int sleeps(void *unused)
{
    (void)unused;
    for (int i = 0; i < SLEEPS; i++)
        sleep_ms(2);
    return 0;
}

static int touches(void *unused)
{
    (void)unused;
    volatile char *memory = fresh_pages(TOUCHED);
    for (size_t i = 0; i < TOUCHED; i++)
        memory[i * PAGE] = 1;
    return 0;
}

static int waits_for(void *body)
{
    in_child((int (*)(void *))body, NULL);
    return 0;
}

int main(void)
{
    struct rusage own, thread, child, sum;
    int status;

    section("switches");
    sleeps(NULL);
    need(getrusage(RUSAGE_SELF, &own) == 0);
    need(getrusage(RUSAGE_THREAD, &thread) == 0);
    check(own.ru_nvcsw >= SLEEPS, "each sleep of the process is a voluntary switch");
    check(thread.ru_nvcsw >= SLEEPS, "and of its thread");
    pid_t pid = spawn(sleeps, NULL);
    need(wait4(pid, &status, 0, &child) == pid);
    need(getrusage(RUSAGE_CHILDREN, &sum) == 0);
    check(child.ru_nvcsw >= SLEEPS, "and of a child");
    check(sum.ru_nvcsw >= child.ru_nvcsw, "the sum of all children holds them");

    section("memory of a thread");
    touches(NULL);
    need(getrusage(RUSAGE_SELF, &own) == 0);
    need(getrusage(RUSAGE_THREAD, &thread) == 0);
    check(thread.ru_minflt >= TOUCHED / 16, "its faults");
    check(thread.ru_maxrss >= RESIDENT, "the resident set of its process");

    section("descendants");
    pid = spawn(waits_for, (void *)sleeps);
    need(wait4(pid, &status, 0, &child) == pid);
    check(child.ru_nvcsw >= SLEEPS, "switches of a grandchild that the child waited for");
    pid = spawn(waits_for, (void *)touches);
    need(wait4(pid, &status, 0, &child) == pid);
    check(child.ru_minflt >= TOUCHED / 16, "faults of a grandchild");
    check(child.ru_maxrss >= RESIDENT, "the larger resident set of the two");
    siginfo_t info;
    pid = spawn(waits_for, (void *)touches);
    need(syscall(SYS_waitid, P_PID, pid, &info, WEXITED, &child) == 0);
    check(child.ru_maxrss >= RESIDENT, "waitid reports the same");
    return 0;
}
