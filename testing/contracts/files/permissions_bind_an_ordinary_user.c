/*
 * path_resolution(7): an ordinary user needs read, write or search permission by class: owner, group, other; root
 * does not.
 */
#include "../contract.h"
#include <grp.h>

static int as_user(void *unused)
{
    (void)unused;
    need(setgroups(0, NULL) == 0 && setgid(1000) == 0 && setuid(1000) == 0);
    OUTCOME(open("private", O_RDONLY));
    OUTCOME(open("readable", O_RDONLY));
    OUTCOME(open("readable", O_WRONLY));
    OUTCOME(open("mine", O_RDONLY));
    OUTCOME(open("closed/inside", O_RDONLY));
    OUTCOME(open("new", O_WRONLY | O_CREAT, 0600));
    OUTCOME(open("open/new", O_WRONLY | O_CREAT, 0600));
    RESULT(mkdir("denied", 0755));
    RESULT(unlink("readable"));
    RESULT(rename("readable", "open/readable"));
    RESULT(chmod("readable", 0777));
    RESULT(chmod("mine", 0400));
    RESULT(chown("mine", 0, 0));
    RESULT(access("readable", R_OK));
    RESULT(access("readable", R_OK | W_OK));
    RESULT(access("private", F_OK));
    RESULT(access("closed/inside", F_OK));
    RESULT(truncate("readable", 0));
    return 0;
}

int main(void)
{
    scratch();
    put_file("private", "", 0600);
    put_file("readable", "", 0644);
    put_file("mine", "", 0044);
    need(chown("mine", 1000, 1000) == 0);
    need(mkdir("closed", 0700) == 0 && mkdir("open", 0777) == 0 && chmod("open", 0777) == 0);
    put_file("closed/inside", "", 0666);
    section("as uid 1000");
    show_status("user", in_child(as_user, NULL));
    section("as root");
    OUTCOME(open("mine", O_RDWR));
    OUTCOME(open("closed/inside", O_RDWR));
    RESULT(access("mine", X_OK));
    return 0;
}
