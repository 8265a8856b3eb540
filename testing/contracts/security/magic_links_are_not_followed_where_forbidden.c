/*
 * openat2(2): RESOLVE_NO_MAGICLINKS and RESOLVE_NO_SYMLINKS refuse /proc/PID/fd, exe, cwd and root links, with O_CREAT
 * too; RESOLVE_BENEATH, RESOLVE_IN_ROOT and RESOLVE_NO_XDEV do not let them lead out.
 */
#include "security.h"
#include <linux/openat2.h>

static long open2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = { .flags = flags, .mode = flags & O_CREAT ? 0644 : 0, .resolve = resolve };
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -1 : 0;
}

int main(void)
{
    static const struct { uint64_t bits; const char *name; } restrictions[] = {
        { 0, "none" }, { RESOLVE_NO_MAGICLINKS, "RESOLVE_NO_MAGICLINKS" },
        { RESOLVE_NO_SYMLINKS, "RESOLVE_NO_SYMLINKS" }, { RESOLVE_NO_XDEV, "RESOLVE_NO_XDEV" },
        { RESOLVE_BENEATH, "RESOLVE_BENEATH" }, { RESOLVE_IN_ROOT, "RESOLVE_IN_ROOT" },
    };
    scratch();
    put_file("file", "text", 0644);
    int file = open("file", O_RDWR), proc = open("/proc/self", O_PATH);
    need(file != -1 && proc != -1 && dup2(file, 60) == 60 && symlink("/proc/self/fd/60", "link") == 0);
    need(symlink("file", "plain") == 0);
    for (size_t at = 0; at < COUNT_OF(restrictions); at++) {
        uint64_t bits = restrictions[at].bits;
        section(restrictions[at].name);
        OUTCOME(open2(AT_FDCWD, "/proc/self/fd/60", O_RDWR, bits));
        OUTCOME(open2(AT_FDCWD, "/proc/self/fd/60", O_RDWR | O_CREAT, bits));
        OUTCOME(open2(proc, "fd/60", O_RDWR, bits));
        OUTCOME(open2(proc, "fd/60", O_RDWR | O_CREAT, bits));
        OUTCOME(open2(proc, "fd/60", O_RDWR | O_CREAT | O_TRUNC, bits));
        OUTCOME(open2(proc, "cwd/file", O_RDONLY, bits));
        OUTCOME(open2(proc, "cwd/new", O_RDWR | O_CREAT, bits));
        OUTCOME(open2(proc, "root/etc/passwd", O_RDONLY, bits));
        OUTCOME(open2(proc, "exe", O_RDONLY, bits));
        OUTCOME(open2(proc, "fd/60", O_PATH | O_NOFOLLOW, bits));
        OUTCOME(open2(AT_FDCWD, "link", O_RDWR, bits));
        OUTCOME(open2(AT_FDCWD, "link", O_RDWR | O_CREAT, bits));
        OUTCOME(open2(AT_FDCWD, "plain", O_RDWR | O_CREAT, bits));
        OUTCOME(open2(AT_FDCWD, "plain", O_RDWR | O_CREAT | O_NOFOLLOW, bits));
        show("a new file", unlink("new") == 0);
    }
    return 0;
}
