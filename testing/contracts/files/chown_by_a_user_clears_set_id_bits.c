/* chown(2), chmod(2): chown by an ordinary user or a write clears set-user-ID; -1 leaves an id as it is. */
#include "../contract.h"

static void show_meta(const char *name)
{
    struct stat meta;
    need(stat(name, &meta) == 0);
    say("%s: mode %o uid %d gid %d", name, meta.st_mode & 07777, (int)meta.st_uid, (int)meta.st_gid);
}

static int as_user(void *unused)
{
    (void)unused;
    need(setgid(1000) == 0 && setuid(1000) == 0);
    RESULT(chown("file", -1, 1000));
    RESULT(chown("file", -1, 7));
    RESULT(chown("written", 1001, -1));
    int fd = open("written", O_WRONLY);
    need(write(fd, "x", 1) == 1);
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "", 0600);
    put_file("written", "", 0600);
    RESULT(chown("file", 1000, 1000));
    RESULT(chown("written", 1000, 1000));
    RESULT(chmod("file", 06755));
    RESULT(chmod("written", 04777));
    show_meta("file");
    in_child(as_user, NULL);
    show_meta("file");
    show_meta("written");
    RESULT(chown("file", 5, -1));
    RESULT(chown("file", -1, 6));
    show_meta("file");
    RESULT(chown("absent", 1, 1));
    RESULT(fchmod(-1, 0600));
    RESULT(chmod("file", 0170644));
    show_meta("file");
    return 0;
}
