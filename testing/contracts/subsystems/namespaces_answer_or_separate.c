/* namespaces(7): /proc/self/ns names each kind, and a UTS namespace keeps its own host name. */
#include "../contract.h"
#include <sys/utsname.h>

static int apart(void *unused)
{
    (void)unused;
    struct utsname name;
    RESULT(unshare(CLONE_NEWUTS));
    need(sethostname("inner", 5) == 0 && uname(&name) == 0);
    show_text("inside", name.nodename);
    return 0;
}

int main(void)
{
    const char *kinds[] = { "mnt", "uts", "ipc", "pid", "net", "user", "cgroup" };
    char path[64], target[64];
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        memset(target, 0, sizeof target);
        snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
        ssize_t length = readlink(path, target, sizeof target - 1);
        say("%s: %.*s", kinds[i], (int)strcspn(target, "["), length < 0 ? errno_name(errno) : target);
    }
    struct utsname before, after;
    need(uname(&before) == 0);
    show_status("apart", in_child(apart, NULL));
    need(uname(&after) == 0);
    show("outside unchanged", strcmp(before.nodename, after.nodename) == 0);
    RESULT(unshare(0x1));
    RESULT(setns(-1, 0));
    return 0;
}
