/*
 * setuid(2), setresuid(2), setgroups(2), setfsuid(2): an ordinary user cannot take another user's ids, and ids that it
 * gave up for good do not come back.
 */
#include "security.h"
#include <sys/fsuid.h>

static int attempt(void *unused)
{
    (void)unused;
    OUTCOME(setuid(0));
    OUTCOME(setuid(1000));
    OUTCOME(seteuid(0));
    OUTCOME(setreuid(0, -1));
    OUTCOME(setreuid(-1, 0));
    OUTCOME(setresuid(-1, -1, 0));
    OUTCOME(setresuid(0, 0, 0));
    OUTCOME(setgid(0));
    OUTCOME(setegid(0));
    OUTCOME(setregid(0, -1));
    OUTCOME(setresgid(-1, -1, 0));
    gid_t root = 0;
    OUTCOME(setgroups(1, &root));
    OUTCOME(setgroups(0, NULL));
    show("setfsuid", setfsuid(0));
    show("setfsuid", setfsuid(-1));
    show("setfsgid", setfsgid(0));
    show("setfsgid", setfsgid(-1));
    uid_t ids[3];
    gid_t groups[3];
    need(getresuid(&ids[0], &ids[1], &ids[2]) == 0 && getresgid(&groups[0], &groups[1], &groups[2]) == 0);
    say("%d %d %d, %d %d %d", (int)ids[0], (int)ids[1], (int)ids[2], (int)groups[0], (int)groups[1], (int)groups[2]);
    show("groups", getgroups(0, NULL));
    return 0;
}

static int saved(void *unused)
{
    (void)unused;
    need(setresuid(NOBODY, 1000, 2000) == 0);
    OUTCOME(seteuid(2000));
    OUTCOME(setuid(NOBODY));
    OUTCOME(setresuid(2000, 2000, 2000));
    OUTCOME(setresuid(NOBODY, -1, -1));
    OUTCOME(setresuid(-1, 1000, -1));
    return 0;
}

int main(void)
{
    as_nobody(attempt, NULL);
    section("saved ids");
    in_child(saved, NULL);
    return 0;
}
