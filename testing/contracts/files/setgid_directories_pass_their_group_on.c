/*
 * inode(7): files made in a set-group-ID directory take its group, subdirectories its bit too; others the
 * creator's group.
 */
#include "../contract.h"

static void show_meta(const char *path)
{
    struct stat meta;
    need(lstat(path, &meta) == 0);
    say("%s: mode %o gid %d", path, meta.st_mode & 07777, (int)meta.st_gid);
}

int main(void)
{
    scratch();
    need(mkdir("plain", 0755) == 0 && mkdir("shared", 0755) == 0);
    need(chown("plain", 0, 50) == 0 && chown("shared", 0, 50) == 0 && chmod("shared", 02755) == 0);
    put_file("plain/file", "", 0644);
    put_file("shared/file", "", 0644);
    need(mkdir("shared/sub", 0700) == 0 && symlink("x", "shared/soft") == 0 && mkdir("plain/sub", 0700) == 0);
    show_meta("shared");
    show_meta("plain/file");
    show_meta("plain/sub");
    show_meta("shared/file");
    show_meta("shared/sub");
    show_meta("shared/soft");
    return 0;
}
