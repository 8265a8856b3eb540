/*
 * mknod(2): root may make devices, a fifo and a plain file; a user may not make devices; a directory is EINVAL or
 * EPERM.
 */
#include "../contract.h"
#include <sys/sysmacros.h>

static int as_user(void *unused)
{
    (void)unused;
    need(setuid(1000) == 0);
    RESULT(mknod("open/device", S_IFCHR | 0600, makedev(1, 3)));
    RESULT(mknod("open/fifo", S_IFIFO | 0600, 0));
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("open", 0777) == 0 && chmod("open", 0777) == 0);
    RESULT(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
    RESULT(mknod("file", S_IFREG | 0644, 0));
    RESULT(mknod("untyped", 0644, 0));
    RESULT(mknod("fifo", S_IFIFO | 0644, 0));
    RESULT(mknod("socket", S_IFSOCK | 0644, 0));
    RESULT(mknod("sub", S_IFDIR | 0755, 0));
    RESULT(mknod("odd", S_IFLNK | 0644, 0));
    RESULT(mknod("file", S_IFREG | 0644, 0));
    RESULT(mknod("absent/file", S_IFREG | 0644, 0));
    struct stat meta;
    need(stat("null", &meta) == 0);
    say("kind %o device %d:%d", meta.st_mode & S_IFMT, (int)major(meta.st_rdev), (int)minor(meta.st_rdev));
    char byte;
    int fd = open("null", O_RDWR);
    RESULT(write(fd, "gone", 4));
    RESULT(read(fd, &byte, 1));
    OUTCOME(open("socket", O_RDWR));
    RESULT(mknod("nodriver", S_IFCHR | 0600, makedev(240, 77)));
    OUTCOME(open("nodriver", O_RDONLY));
    in_child(as_user, NULL);
    return 0;
}
