/*
 * prctl(2): the thread name is cut to 15 bytes; PR_SET_PDEATHSIG signals a child when its parent dies and is
 * cleared by fork.
 */
#include "../contract.h"
#include <sys/prctl.h>

static int watches(void *shared)
{
    int number = -1;
    prctl(PR_GET_PDEATHSIG, &number);
    show("inherited over fork", number);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    ((volatile int *)shared)[0] = 1;
    struct timespec limit = { 2, 0 };
    ((volatile int *)shared)[1] = sigtimedwait(&set, NULL, &limit);
    return 0;
}

static int parent(void *shared)
{
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    spawn(watches, shared);
    while (!((volatile int *)shared)[0])
        sleep_ms(2);
    return 0;
}

int main(void)
{
    char name[17] = { 0 };
    volatile int *shared = shared_page();
    RESULT(prctl(PR_SET_NAME, "a name that is too long"));
    RESULT(prctl(PR_GET_NAME, name));
    show_text("name", name);
    get_file("/proc/self/comm", name, sizeof name);
    show_text("comm", strtok(name, "\n"));
    RESULT(prctl(PR_SET_NAME, BAD_POINTER));
    RESULT(prctl(PR_SET_PDEATHSIG, 200));
    RESULT(prctl(PR_GET_DUMPABLE));
    RESULT(prctl(PR_SET_DUMPABLE, 7));
    RESULT(prctl(PR_SET_DUMPABLE, 0));
    RESULT(prctl(PR_GET_DUMPABLE));
    RESULT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    RESULT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    RESULT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    RESULT(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    RESULT(prctl(123456));
    show_status("parent", in_child(parent, (void *)shared));
    for (int i = 0; i < 200 && !shared[1]; i++)
        sleep_ms(5);
    show_text("the orphan got", signal_name(shared[1]));
    return 0;
}
