/*
 * capset(2), prctl(2) PR_CAPBSET_DROP, capabilities(7): what was dropped from the bounding set is neither added to the
 * inheritable set nor given by execution; the sets of others are not set; nothing is raised that is not permitted.
 */
#include "security.h"
#include <linux/capability.h>

static struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
static struct __user_cap_data_struct sets[2];

static void show_sets(const char *when)
{
    need(syscall(SYS_capget, &header, sets) == 0);
    say("%s: kill %d %d %d, chown %d %d %d", when, !!(sets[0].effective & 1 << CAP_KILL),
        !!(sets[0].permitted & 1 << CAP_KILL), !!(sets[0].inheritable & 1 << CAP_KILL),
        !!(sets[0].effective & 1 << CAP_CHOWN), !!(sets[0].permitted & 1 << CAP_CHOWN),
        !!(sets[0].inheritable & 1 << CAP_CHOWN));
}

static int user(void *unused)
{
    (void)unused;
    show_sets("user");
    sets[0].effective = 1 << CAP_KILL;
    OUTCOME(syscall(SYS_capset, &header, sets));
    sets[0].permitted = 1 << CAP_KILL;
    OUTCOME(syscall(SYS_capset, &header, sets));
    sets[0].effective = sets[0].permitted = 0;
    sets[0].inheritable = 1 << CAP_KILL;
    OUTCOME(syscall(SYS_capset, &header, sets));
    OUTCOME(prctl(PR_CAPBSET_DROP, CAP_KILL));
    OUTCOME(prctl(PR_CAPBSET_DROP, 500));
    OUTCOME(prctl(PR_CAPBSET_READ, CAP_KILL));
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        show_sets("executed");
        show("set-id", geteuid() != getuid());
        return 0;
    }
    scratch();
    copy_self("program", 0, 0, 04755);
    show_sets("root");
    OUTCOME(prctl(PR_CAPBSET_DROP, CAP_KILL));
    show("bounding", prctl(PR_CAPBSET_READ, CAP_KILL));
    show_sets("dropped");
    sets[0].inheritable |= 1 << CAP_CHOWN;
    OUTCOME(syscall(SYS_capset, &header, sets));
    sets[0].inheritable |= 1 << CAP_KILL;
    OUTCOME(syscall(SYS_capset, &header, sets));
    show_sets("inheritable");
    header.pid = getppid();
    OUTCOME(syscall(SYS_capset, &header, sets));
    header.pid = getpid();
    need(syscall(SYS_capget, &header, sets) == 0);
    sets[0].effective &= ~(1 << CAP_CHOWN);
    OUTCOME(syscall(SYS_capset, &header, sets));
    header.pid = 0;
    show_sets("chown not effective");
    OUTCOME(chown("program", 0, 0));
    need(chmod("program", 04755) == 0);
    pid_t child = fork();
    if (child == 0) {
        execl("./program", "program", "report", NULL);
        _exit(99);
    }
    show_status("root's", reap(child));
    child = fork();
    if (child == 0) {
        become_nobody();
        execl("./program", "program", "report", NULL);
        _exit(99);
    }
    show_status("a user's", reap(child));
    as_nobody(user, NULL);
    return 0;
}
