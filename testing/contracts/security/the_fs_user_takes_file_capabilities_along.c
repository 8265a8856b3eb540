/*
 * setfsuid(2), capabilities(7): a thread whose file system user leaves 0 loses the capabilities about files from its
 * effective set and gets them back with 0; all others stay.
 */
#include "security.h"
#include <linux/capability.h>
#include <sys/fsuid.h>

static void show_sets(const char *when)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    need(syscall(SYS_capget, &header, data) == 0);
    say("%s: effective %08x %08x, permitted %08x %08x", when, data[1].effective, data[0].effective, data[1].permitted,
        data[0].permitted);
}

static void attempts(void)
{
    int fd = open("secret", O_RDONLY);
    say("open: %s", fd == -1 ? errno_name(errno) : "ok");
    OUTCOME(chown("mine", 1, 1));
    OUTCOME(chmod("secret", 0644));
    OUTCOME(mknod("device", S_IFCHR | 0666, 0x103));
    OUTCOME(unlink("theirs/file"));
    OUTCOME(kill(1, 0));
    OUTCOME(sethostname("contract", 8) == 0 || errno != EPERM ? 0 : -1);
}

int main(void)
{
    scratch();
    put_file("secret", "secret", 0600);
    put_file("mine", "mine", 0644);
    need(chown("mine", NOBODY, NOBODY) == 0 && mkdir("theirs", 0755) == 0);
    put_file("theirs/file", "text", 0644);
    show_sets("before");
    show("old", setfsuid(NOBODY));
    show_sets("as another");
    attempts();
    show("old", setfsuid(0));
    show_sets("back");
    need(chown("secret", 0, 0) == 0 && chmod("secret", 0600) == 0);
    show("old", setfsuid(1000));
    show("old", setfsuid(NOBODY));
    show_sets("from another to another");
    show("old", setfsuid(-1));
    show("effective user", geteuid());
    need(setresuid(-1, -1, -1) == 0);
    show("after setresuid(-1, -1, -1)", setfsuid(-1));
    show_sets("and then");
    return 0;
}
