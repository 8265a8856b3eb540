/*
 * mount(2), umount2(2), unshare(2), renameat2(2): what they answer to pointers that lead nowhere, names
 * that are not there or too long, kinds and flags that are not known, and in which order they look.
 */
#include "../contract.h"
#include <linux/fs.h>
#include <sys/mount.h>

static char long_name[PATH_MAX + 10];

static void mounts(void)
{
    section("mount");
    OUTCOME(mount("none", "dir", "tmpfs", 0, NULL));
    OUTCOME(umount2("dir", 0));
    OUTCOME(mount(BAD_POINTER, "dir", "tmpfs", 0, NULL));
    OUTCOME(mount("none", BAD_POINTER, "tmpfs", 0, NULL));
    OUTCOME(mount("none", "dir", BAD_POINTER, 0, NULL));
    OUTCOME(mount("none", "dir", "tmpfs", 0, BAD_POINTER));
    OUTCOME(mount(NULL, "dir", "tmpfs", 0, NULL));
    OUTCOME(umount2("dir", 0));
    OUTCOME(mount("none", NULL, "tmpfs", 0, NULL));
    OUTCOME(mount("none", "dir", NULL, 0, NULL));
    OUTCOME(mount("none", "dir", "", 0, NULL));
    OUTCOME(mount("none", "dir", "no such kind", 0, NULL));
    OUTCOME(mount("none", "absent", "tmpfs", 0, NULL));
    OUTCOME(mount("none", "", "tmpfs", 0, NULL));
    OUTCOME(mount("none", "file", "tmpfs", 0, NULL));
    OUTCOME(mount("none", "file/x", "tmpfs", 0, NULL));
    OUTCOME(mount("none", long_name, "tmpfs", 0, NULL));
    OUTCOME(mount(long_name, "dir", "tmpfs", 0, NULL));
    OUTCOME(mount("none", "dir", long_name, 0, NULL));
    section("other operations of mount");
    OUTCOME(mount("dir", "other", NULL, MS_BIND, NULL));
    OUTCOME(umount2("other", 0));
    OUTCOME(mount("absent", "other", NULL, MS_BIND, NULL));
    OUTCOME(mount("", "other", NULL, MS_BIND, NULL));
    OUTCOME(mount(NULL, "other", NULL, MS_BIND, NULL));
    OUTCOME(mount("file", "other", NULL, MS_BIND, NULL));
    OUTCOME(mount("dir", "file", NULL, MS_BIND, NULL));
    OUTCOME(mount("none", "dir", NULL, MS_REMOUNT, NULL));
    OUTCOME(mount("dir", "other", NULL, MS_MOVE, NULL));
    OUTCOME(mount("none", "dir", NULL, MS_PRIVATE, NULL));
    OUTCOME(mount("none", "dir", NULL, MS_PRIVATE | MS_SHARED, NULL));
    OUTCOME(mount("none", "/", NULL, MS_PRIVATE | MS_NOSUID, NULL));
}

static void unmounts(void)
{
    section("umount2");
    OUTCOME(umount2(BAD_POINTER, 0));
    OUTCOME(umount2(NULL, 0));
    OUTCOME(umount2("", 0));
    OUTCOME(umount2("absent", 0));
    OUTCOME(umount2("dir", 0));
    OUTCOME(umount2("file", 0));
    OUTCOME(umount2(long_name, 0));
    OUTCOME(umount2("dir", 0x100));
    OUTCOME(umount2(BAD_POINTER, 0x100));
    OUTCOME(umount2("dir", MNT_EXPIRE | MNT_FORCE));
    OUTCOME(umount2("dir", MNT_EXPIRE | MNT_DETACH));
    need(mount("none", "dir", "tmpfs", 0, NULL) == 0);
    int inside = open("dir", O_RDONLY);
    OUTCOME(umount2("dir", 0));
    OUTCOME(umount2("dir", MNT_EXPIRE));
    close(inside);
    OUTCOME(umount2("dir", 0));
    OUTCOME(umount2("dir", 0));
}

static void others(void)
{
    section("unshare");
    OUTCOME(unshare(0));
    OUTCOME(unshare(1));
    OUTCOME(unshare(CLONE_PARENT));
    OUTCOME(unshare(CLONE_THREAD));
    OUTCOME(unshare(CLONE_FS | CLONE_FILES));
    section("renameat2");
    OUTCOME(syscall(SYS_renameat2, AT_FDCWD, BAD_POINTER, AT_FDCWD, "new", 0));
    OUTCOME(syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, BAD_POINTER, 0));
    OUTCOME(syscall(SYS_renameat2, AT_FDCWD, BAD_POINTER, AT_FDCWD, "new", 8));
    OUTCOME(syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "new", RENAME_WHITEOUT | RENAME_EXCHANGE));
}

int main(void)
{
    scratch();
    memset(long_name, 'n', sizeof long_name - 1);
    need(mkdir("dir", 0755) == 0 && mkdir("other", 0755) == 0);
    put_file("file", "text", 0644);
    mounts();
    unmounts();
    others();
    return 0;
}
