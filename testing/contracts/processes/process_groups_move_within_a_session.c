/*
 * setpgid(2): a child may be moved to a group of the same session before it execs; leaders and strangers may not
 * move.
 */
#include "../contract.h"

static int sleeper(void *unused) { (void)unused; pause(); return 0; }
static int leader(void *unused)
{
    (void)unused;
    need(setsid() == getpid());
    RESULT(setpgid(0, 0));
    RESULT(setsid());
    show("group is pid", getpgrp() == getpid());
    show("session is pid", getsid(0) == getpid());
    return 0;
}

int main(void)
{
    pid_t one = spawn(sleeper, NULL), two = spawn(sleeper, NULL);
    show("inherited group", getpgid(one) == getpgrp());
    RESULT(setpgid(one, one));
    RESULT(setpgid(two, one));
    show("joined", getpgid(two) == one);
    RESULT(setpgid(two, 999999));
    RESULT(setpgid(1, 1));
    RESULT(setpgid(one, -1));
    RESULT(setpgid(999999, 0));
    OUTCOME(getpgid(999999));
    OUTCOME(getsid(999999));
    RESULT(kill(-one, SIGTERM));
    show_status("one", reap(one));
    show_status("two", reap(two));
    RESULT(kill(-one, 0));
    show_status("leader", in_child(leader, NULL));
    return 0;
}
