/* statfs(2): the magic number tells which file system a path or a descriptor lives on. */
#include "../contract.h"
#include <sys/statfs.h>

static void magic(const char *path)
{
    struct statfs meta;
    if (statfs(path, &meta))
        say("%s: %s", path, errno_name(errno));
    else
        say("%s: magic %lx, names up to %ld", path, (unsigned long)meta.f_type, (long)meta.f_namelen);
}

int main(void)
{
    magic("/proc");
    magic("/proc/self/status");
    magic("/sys");
    magic("/absent");
    magic("/proc/version/x");
    int ends[2];
    struct statfs meta;
    need(pipe(ends) == 0);
    RESULT(fstatfs(ends[0], &meta));
    say("pipe magic %lx", (unsigned long)meta.f_type);
    RESULT(fstatfs(-1, &meta));
    RESULT(syscall(SYS_statfs, "/proc", BAD_POINTER));
    RESULT(syscall(SYS_statfs, BAD_POINTER, &meta));
    need(statfs("/tmp", &meta) == 0);
    say("/tmp: block size %ld, free not above total %d", (long)meta.f_bsize, meta.f_bfree <= meta.f_blocks);
    return 0;
}
