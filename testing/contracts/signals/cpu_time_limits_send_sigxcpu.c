/* getrlimit(2): a process that uses more CPU time than the soft limit gets SIGXCPU, and SIGKILL at the hard one. */
#include "../contract.h"
#include <sys/resource.h>

static volatile sig_atomic_t warned;
static void note(int number) { (void)number; warned = 1; }

static int burns(void *unused)
{
    (void)unused;
    struct rlimit limit = { 1, 2 };
    need(setrlimit(RLIMIT_CPU, &limit) == 0);
    for (;;)
        ;
    return 0;
}

static int survives_the_warning(void *unused)
{
    (void)unused;
    struct rlimit limit = { 1, 10 };
    catch_signal(SIGXCPU, note, 0);
    need(setrlimit(RLIMIT_CPU, &limit) == 0);
    while (!warned)
        ;
    return 4;
}

int main(void)
{
    show_status("unhandled", in_child(burns, NULL));
    show_status("handled", in_child(survives_the_warning, NULL));
    return 0;
}
