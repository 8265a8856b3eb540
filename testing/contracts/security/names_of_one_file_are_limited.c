/*
 * tmpfs(5), nr_inodes: every name takes kernel memory, so a further link to a file counts as an inode (link(2),
 * ENOSPC); the number of names is not a way to fill memory.
 */
#include "security.h"
#include <sys/mount.h>
#include <sys/statfs.h>

static int attempt(void *unused)
{
    char name[16];
    int made = 0;
    struct statfs figures;
    (void)unused;
    need(chdir("small") == 0);
    put_file("file", "x", 0644);
    for (; made < 100; made++) {
        snprintf(name, sizeof name, "link%d", made);
        if (link("file", name) == -1)
            break;
    }
    show("links", made);
    OUTCOME(link("file", "one-more"));
    OUTCOME(open("another", O_WRONLY | O_CREAT, 0600));
    OUTCOME(unlink("link0"));
    OUTCOME(link("file", "one-more"));
    OUTCOME(link("file", "two-more"));
    OUTCOME(unlink("file"));
    OUTCOME(symlink("x", "symlink"));
    OUTCOME(mkdir("directory", 0755));
    need(statfs(".", &figures) == 0);
    show("inodes left", figures.f_ffree);
    while (made--) {
        snprintf(name, sizeof name, "link%d", made);
        unlink(name);
    }
    unlink("one-more");
    unlink("symlink");
    need(statfs(".", &figures) == 0);
    show("inodes left in the end", figures.f_ffree);
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("small", 0777) == 0 && mount("none", "small", "tmpfs", 0, "nr_inodes=12,mode=1777") == 0);
    as_nobody(attempt, NULL);
    need(umount2("small", MNT_DETACH) == 0);
    return 0;
}
