/* mount(2): root mounts a fresh tmpfs over a directory, it hides what was there, busy umount is EBUSY, lazy works. */
#include "../contract.h"
#include <sys/mount.h>

static int user(void *unused)
{
    (void)unused;
    need(setuid(1000) == 0);
    RESULT(mount("none", "point", "tmpfs", 0, NULL));
    RESULT(umount("point"));
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("point", 0755) == 0);
    put_file("point/hidden", "", 0644);
    RESULT(mount("none", "point", "tmpfs", 0, "size=64k,mode=700"));
    RESULT(access("point/hidden", F_OK));
    struct stat outer, inner;
    need(stat(".", &outer) == 0 && stat("point", &inner) == 0);
    say("another device %d, mode %o", outer.st_dev != inner.st_dev, inner.st_mode & 07777);
    static char block[100000];
    int fd = open("point/file", O_WRONLY | O_CREAT, 0600);
    long total = 0, wrote;
    while ((wrote = write(fd, block, 4096)) > 0)
        total += wrote;
    say("filled with %ld, then %s", total, errno_name(errno));
    RESULT(rename("point/file", "moved"));
    RESULT(link("point/file", "linked"));
    RESULT(umount("point"));
    close(fd);
    RESULT(rmdir("point"));
    show_status("user", in_child(user, NULL));
    RESULT(mount("none", "point", NULL, MS_REMOUNT | MS_RDONLY, NULL));
    OUTCOME(open("point/new", O_WRONLY | O_CREAT, 0600));
    RESULT(umount("point"));
    RESULT(access("point/hidden", F_OK));
    RESULT(umount("point"));
    RESULT(mount("none", "absent", "tmpfs", 0, NULL));
    RESULT(mount("none", "point", "nosuchfs", 0, NULL));
    RESULT(mount("none", "point/hidden", "tmpfs", 0, NULL));
    RESULT(mount("none", "point", "tmpfs", 0, NULL));
    fd = open("point/file", O_WRONLY | O_CREAT, 0600);
    RESULT(umount2("point", MNT_DETACH));
    RESULT(write(fd, "x", 1));
    RESULT(access("point/hidden", F_OK));
    return 0;
}
