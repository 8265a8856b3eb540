/* exit(3), POSIX: when an exit orphans a group with stopped members, they get SIGHUP and then SIGCONT. */
#include "../contract.h"
#include <sys/prctl.h>

static volatile int *shared;
static void note(int number) { shared[shared[0]++ + 1] = number; }

static int member(void *unused)
{
    (void)unused;
    setpgid(0, 0);
    struct sigaction action = { .sa_handler = note };
    sigfillset(&action.sa_mask);
    need(sigaction(SIGHUP, &action, NULL) == 0 && sigaction(SIGCONT, &action, NULL) == 0);
    raise(SIGSTOP);
    return 5;
}

static int parent(void *unused)
{
    int status;
    need(setsid() == getpid());
    pid_t child = spawn(member, unused);
    need(waitpid(child, &status, WUNTRACED) == child);
    show_status("member", status);
    return 0;
}

int main(void)
{
    int status;
    shared = shared_page();
    need(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    show_status("its parent", in_child(parent, NULL));
    need(waitpid(-1, &status, 0) > 0);
    show_status("member", status);
    say("signals %d: %s %s", shared[0], signal_name(shared[1]), signal_name(shared[2]));
    return 0;
}
