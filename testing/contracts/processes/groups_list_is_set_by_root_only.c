/* getgroups(2): root sets supplementary groups, a count of 0 asks for their number, a short buffer is EINVAL. */
#include "../contract.h"
#include <grp.h>

static int child(void *unused)
{
    (void)unused;
    gid_t groups[4] = { 30, 10, 20 }, got[4] = { 0 };
    RESULT(setgroups(3, groups));
    RESULT(getgroups(0, NULL));
    RESULT(getgroups(4, got));
    say("groups %d %d %d", (int)got[0], (int)got[1], (int)got[2]);
    RESULT(getgroups(2, got));
    RESULT(getgroups(-1, got));
    RESULT(setresgid(10, 10, 10));
    RESULT(setuid(1000));
    RESULT(setgroups(0, NULL));
    RESULT(setresgid(20, -1, -1));
    RESULT(setresgid(-1, 10, -1));
    gid_t real, effective, saved;
    getresgid(&real, &effective, &saved);
    say("real %d effective %d saved %d", (int)real, (int)effective, (int)saved);
    return 0;
}

int main(void)
{
    show_status("child", in_child(child, NULL));
    return 0;
}
