/*
 * statx(2): returns the basic fields with their mask, works on a descriptor by AT_EMPTY_PATH, and refuses unknown
 * flags.
 */
#include "../contract.h"

struct statx_layout {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, uid, gid;
    uint16_t mode, pad;
    uint64_t inode, size, blocks, attributes_mask;
    char rest[256 - 64];
};

static long statx_(int directory, const char *path, int flags, unsigned mask, void *out)
{
    return syscall(SYS_statx, directory, path, flags, mask, out);
}

int main(void)
{
    scratch();
    put_file("file", "1234567", 0604);
    need(symlink("file", "soft") == 0);
    struct statx_layout meta;
    memset(&meta, 0x55, sizeof meta);
    RESULT(statx_(AT_FDCWD, "file", 0, 0x7ff, &meta));
    say("basic fields present %d", (meta.mask & 0x7ff) == 0x7ff);
    say("mode %o size %d links %d uid %d", meta.mode, (int)meta.size, meta.links, meta.uid);
    RESULT(statx_(AT_FDCWD, "soft", AT_SYMLINK_NOFOLLOW, 0x7ff, &meta));
    say("mode %o size %d", meta.mode, (int)meta.size);
    int fd = open("file", O_PATH);
    RESULT(statx_(fd, "", AT_EMPTY_PATH, 0x7ff, &meta));
    RESULT(statx_(fd, "", 0, 0x7ff, &meta));
    RESULT(statx_(AT_FDCWD, "absent", 0, 0x7ff, &meta));
    RESULT(statx_(AT_FDCWD, "file", 0x8, 0x7ff, &meta));
    RESULT(statx_(AT_FDCWD, "file", 0, 0x80000000, &meta));
    RESULT(statx_(AT_FDCWD, "file", 0, 0x7ff, BAD_POINTER));
    return 0;
}
