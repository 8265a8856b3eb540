/*
 * tmpfs(5): every name of a file beyond its first counts against nr_inodes, and a symbolic link with a long target
 * takes a page of the file system, until they are removed.
 */
#include "../contract.h"
#include <sys/mount.h>
#include <sys/statfs.h>

static void state(const char *when)
{
    struct statfs all;
    need(statfs("small", &all) == 0);
    say("%s: %ld of %ld blocks, %ld of %ld files free", when, (long)all.f_bfree, (long)all.f_blocks, (long)all.f_ffree,
        (long)all.f_files);
}

static void long_link(size_t length, const char *name)
{
    char target[4096];
    memset(target, 'x', length);
    target[length] = 0;
    say("%zu bytes: %s", length, symlink(target, name) == 0 ? "ok" : errno_name(errno));
    state("then");
}

int main(void)
{
    char name[64];
    int made = 0;
    scratch();
    need(mkdir("small", 0700) == 0);
    need(mount("none", "small", "tmpfs", 0, "nr_inodes=10,size=32k") == 0);
    put_file("small/first", "x", 0600);
    state("one file");
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "small/name-%d", i);
        made += link("small/first", name) == 0;
    }
    say("%d further names, then %s", made, errno_name(errno));
    state("full");
    RESULT(mkdir("small/directory", 0700));
    RESULT(rename("small/name-0", "small/moved"));
    RESULT(rename("small/name-1", "small/name-2"));
    state("names of one file renamed over each other");
    RESULT(unlink("small/name-3"));
    RESULT(unlink("small/name-4"));
    RESULT(unlink("small/first"));
    state("three fewer");
    put_file("small/other", "y", 0600);
    RESULT(rename("small/other", "small/moved"));
    state("one replaced");
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "small/name-%d", i);
        unlink(name);
    }
    RESULT(unlink("small/moved"));
    state("empty");
    section("a file without a name");
    int fd = open("small", O_TMPFILE | O_RDWR, 0600);
    state("open");
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    RESULT(linkat(AT_FDCWD, name, AT_FDCWD, "small/named", AT_SYMLINK_FOLLOW));
    state("named");
    close(fd);
    RESULT(unlink("small/named"));
    state("gone");
    section("links");
    long_link(10, "small/a");
    long_link(126, "small/b");
    long_link(127, "small/c");
    long_link(128, "small/d");
    long_link(4000, "small/e");
    RESULT(unlink("small/e"));
    RESULT(unlink("small/d"));
    RESULT(unlink("small/a"));
    state("removed");
    RESULT(umount("small"));
    return 0;
}
