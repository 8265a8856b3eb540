/*
 * openat2(2): RESOLVE flags forbid links, leaving the directory or crossing mounts; the structure is checked by
 * size.
 */
#include "../contract.h"

struct how { uint64_t flags, mode, resolve; };
enum { NO_XDEV = 1, NO_MAGICLINKS = 2, NO_SYMLINKS = 4, BENEATH = 8, IN_ROOT = 16 };

static long open_how(int directory, const char *path, uint64_t flags, uint64_t resolve)
{
    struct how how = { flags, 0, resolve };
    return syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int main(void)
{
    scratch();
    need(mkdir("sub", 0755) == 0 && symlink("inside", "sub/soft") == 0 && symlink("../outer", "sub/up") == 0);
    put_file("sub/inside", "", 0600);
    put_file("outer", "", 0600);
    int sub = open("sub", O_PATH);
    OUTCOME(open_how(sub, "inside", O_RDONLY, 0));
    OUTCOME(open_how(sub, "soft", O_RDONLY, NO_SYMLINKS));
    OUTCOME(open_how(sub, "soft", O_RDONLY, BENEATH));
    OUTCOME(open_how(sub, "up", O_RDONLY, 0));
    OUTCOME(open_how(sub, "up", O_RDONLY, BENEATH));
    OUTCOME(open_how(sub, "../outer", O_RDONLY, BENEATH));
    OUTCOME(open_how(sub, "/inside", O_RDONLY, BENEATH));
    OUTCOME(open_how(sub, "/inside", O_RDONLY, IN_ROOT));
    OUTCOME(open_how(sub, "../../inside", O_RDONLY, IN_ROOT));
    OUTCOME(open_how(AT_FDCWD, "/proc/version", O_RDONLY, NO_XDEV));
    OUTCOME(open_how(AT_FDCWD, "/proc/self/exe", O_RDONLY, NO_MAGICLINKS));
    OUTCOME(open_how(sub, "inside", O_RDONLY, 0x1000));
    OUTCOME(open_how(sub, "inside", 1ULL << 40, 0));
    struct how how = { O_RDONLY, 0600, 0 };
    OUTCOME(syscall(SYS_openat2, sub, "inside", &how, sizeof how));
    how.mode = 0;
    OUTCOME(syscall(SYS_openat2, sub, "inside", &how, 8));
    struct { struct how how; uint64_t more; } larger = { { O_RDONLY, 0, 0 }, 0 };
    OUTCOME(syscall(SYS_openat2, sub, "inside", &larger, sizeof larger));
    larger.more = 1;
    OUTCOME(syscall(SYS_openat2, sub, "inside", &larger, sizeof larger));
    return 0;
}
