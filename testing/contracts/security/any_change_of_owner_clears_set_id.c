/*
 * chown(2): a call by the owner or root clears the set-id bits of a file, also where nothing changes; no call of others
 * does. open(2): O_TMPFILE and O_CREAT exclude each other. mknod(2): a whiteout needs no privilege, other devices do.
 */
#include "security.h"
#include <sys/sysmacros.h>

static void shown(const char *path)
{
    struct stat meta;
    need(lstat(path, &meta) == 0);
    say("%s %o", path, meta.st_mode);
}

static void changes(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    need(chmod(path, mode) == 0);
    say("chown(%d, %d) of %o: %s", uid == -1U ? -1 : 0, gid == -1U ? -1 : 0, mode,
        chown(path, uid, gid) == 0 ? "ok" : errno_name(errno));
    shown(path);
}

static int attempt(void *unused)
{
    (void)unused;
    static const mode_t modes[] = { 06755, 06745, 04755, 02745, 02755, 06000 };
    put_file("file", "text", 0755);
    need(mkdir("directory", 0755) == 0);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        changes("file", modes[i], -1, -1);
        changes("file", modes[i], getuid(), -1);
        changes("file", modes[i], -1, getgid());
        changes("directory", modes[i], -1, -1);
        changes("directory", modes[i], getuid(), getgid());
    }
    OUTCOME(open(".", O_TMPFILE | O_RDWR, 0600));
    OUTCOME(open(".", O_TMPFILE | O_RDWR | O_CREAT, 0600));
    OUTCOME(mknod("whiteout", S_IFCHR | 0666, 0));
    OUTCOME(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
    OUTCOME(mknod("block", S_IFBLK | 0666, 0));
    OUTCOME(open("whiteout", O_RDWR));
    unlink("whiteout"), unlink("file"), rmdir("directory");
    return 0;
}

/* The files are root's. */
static int strangers(void *unused)
{
    (void)unused;
    static const char *const names[] = { "plain", "user", "group", "both", "lock" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        say("chown(-1, -1): %s", chown(names[i], -1, -1) == 0 ? "ok" : errno_name(errno));
        shown(names[i]);
        OUTCOME(chown(names[i], getuid(), -1));
    }
    return 0;
}

int main(void)
{
    scratch();
    need(chmod(".", 0777) == 0);
    put_file("plain", "", 0755), put_file("user", "", 04755), put_file("group", "", 02755);
    put_file("both", "", 06755), put_file("lock", "", 02745);
    section("a stranger");
    show_status("attempt", as_nobody(strangers, NULL));
    section("a user");
    show_status("attempt", as_nobody(attempt, NULL));
    section("root");
    show_status("attempt", in_child(attempt, NULL));
    return 0;
}
