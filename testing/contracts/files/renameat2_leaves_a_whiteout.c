/*
 * rename(2), RENAME_WHITEOUT: a device node 0:0 without rights takes the old name, owned by the caller, who needs no
 * privilege. It goes with RENAME_NOREPLACE, not with RENAME_EXCHANGE.
 */
#include "../contract.h"
#include <sys/sysmacros.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif

static int move(const char *from, const char *to, unsigned flags)
{
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static void look(const char *name)
{
    struct stat seen;
    if (lstat(name, &seen) != 0) {
        say("%s: %s", name, errno_name(errno));
        return;
    }
    say("%s: mode %o, device %u:%u, links %lu, owner %u", name, seen.st_mode, major(seen.st_rdev), minor(seen.st_rdev),
        (unsigned long)seen.st_nlink, seen.st_uid);
}

static int as_user(void *unused)
{
    need(chmod(".", 0777) == 0 && setuid(65534) == 0);
    put_file("mine", "text", 0644);
    RESULT(move("mine", "moved", RENAME_WHITEOUT));
    look("mine");
    look("moved");
    RESULT(open("mine", O_RDONLY));
    RESULT(unlink("mine"));
    return unused != NULL;
}

int main(void)
{
    scratch();
    show_status("user", in_child(as_user, NULL));
    put_file("old", "text", 0644);
    put_file("there", "text", 0644);
    RESULT(move("old", "new", RENAME_WHITEOUT | RENAME_EXCHANGE));
    RESULT(move("old", "there", RENAME_WHITEOUT | RENAME_NOREPLACE));
    look("old");
    RESULT(move("old", "there", RENAME_WHITEOUT));
    look("old");
    look("there");
    need(mkdir("directory", 0755) == 0 && mkdir("other", 0755) == 0);
    RESULT(move("directory", "other/inside", RENAME_WHITEOUT));
    look("directory");
    look("other");
    look("other/inside");
    RESULT(move("absent", "other/absent", RENAME_WHITEOUT));
    look("absent");
    return 0;
}
