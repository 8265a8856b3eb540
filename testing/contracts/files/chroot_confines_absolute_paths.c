/* chroot(2): absolute paths and ".." stop at the new root, descriptors opened before still reach outside. */
#include "../contract.h"

static int confined(void *unused)
{
    (void)unused;
    int outside = open("/", O_RDONLY);
    RESULT(chroot("jail"));
    OUTCOME(open("outer", O_RDONLY));
    RESULT(chdir("/"));
    OUTCOME(open("/inside", O_RDONLY));
    OUTCOME(open("../../../inside", O_RDONLY));
    OUTCOME(open("/proc/self", O_RDONLY));
    OUTCOME(open("/soft", O_RDONLY));
    OUTCOME(openat(outside, "proc/self/status", O_RDONLY));
    char path[64];
    need(getcwd(path, sizeof path));
    show_text("cwd", path);
    need(setuid(1000) == 0);
    RESULT(chroot("/"));
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("jail", 0755) == 0 && symlink("/inside", "jail/soft") == 0);
    put_file("jail/inside", "", 0644);
    put_file("outer", "", 0644);
    RESULT(chroot("absent"));
    RESULT(chroot("outer"));
    show_status("confined", in_child(confined, NULL));
    return 0;
}
