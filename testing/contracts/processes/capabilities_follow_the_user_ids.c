/* capabilities(7): root has them all, giving up uid 0 clears them, PR_SET_KEEPCAPS keeps the permitted ones. */
#include "../contract.h"
#include <linux/capability.h>
#include <sys/prctl.h>

static void show_capabilities(const char *when)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    need(syscall(SYS_capget, &header, data) == 0);
    say("%s: kill effective %d permitted %d, chown effective %d", when, !!(data[0].effective & 1 << CAP_KILL),
        !!(data[0].permitted & 1 << CAP_KILL), !!(data[0].effective & 1 << CAP_CHOWN));
}

static int drops(void *keep)
{
    if (keep)
        need(prctl(PR_SET_KEEPCAPS, 1) == 0);
    need(setuid(1000) == 0);
    show_capabilities(keep ? "dropped with keepcaps" : "dropped");
    RESULT(kill(getppid(), 0));
    return 0;
}

static int effective_only(void *unused)
{
    (void)unused;
    need(seteuid(1000) == 0);
    show_capabilities("effective user changed");
    need(seteuid(0) == 0);
    show_capabilities("and back");
    RESULT(prctl(PR_CAPBSET_READ, CAP_KILL));
    RESULT(prctl(PR_CAPBSET_READ, 500));
    struct __user_cap_header_struct header = { 0x1234, 0 };
    RESULT(syscall(SYS_capget, &header, NULL));
    show("version offered", header.version == _LINUX_CAPABILITY_VERSION_3);
    header.pid = 9999999;
    struct __user_cap_data_struct data[2];
    RESULT(syscall(SYS_capget, &header, data));
    return 0;
}

int main(void)
{
    show_capabilities("root");
    in_child(drops, NULL);
    in_child(drops, &errno);
    in_child(effective_only, NULL);
    return 0;
}
