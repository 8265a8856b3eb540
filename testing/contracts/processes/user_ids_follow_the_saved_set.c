/* setuid(2), setresuid(2): root sets all three ids; a user may only swap among real, effective and saved. */
#include "../contract.h"

static void show_ids(void)
{
    uid_t real, effective, saved;
    need(getresuid(&real, &effective, &saved) == 0);
    say("real %d effective %d saved %d", (int)real, (int)effective, (int)saved);
}

static int drop_for_good(void *unused)
{
    (void)unused;
    RESULT(setuid(1000));
    show_ids();
    RESULT(setuid(0));
    RESULT(setresuid(-1, 0, -1));
    RESULT(setgid(7));
    return 0;
}

static int drop_and_return(void *unused)
{
    (void)unused;
    RESULT(setresuid(1000, 2000, 0));
    show_ids();
    RESULT(setreuid(-1, 0));
    show_ids();
    RESULT(setresuid(-1, 3000, -1));
    RESULT(setresuid(-1, 1000, 1000));
    show_ids();
    RESULT(setreuid(2000, 1000));
    return 0;
}

int main(void)
{
    show_ids();
    show_status("for good", in_child(drop_for_good, NULL));
    show_status("and back", in_child(drop_and_return, NULL));
    return 0;
}
