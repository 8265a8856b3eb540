/* mkdir(2): the mode is cut by the umask, a directory has two links plus one per subdirectory. */
#include "../contract.h"

int main(void)
{
    scratch();
    struct stat meta;
    umask(027);
    RESULT(mkdir("sub", 0777));
    need(stat("sub", &meta) == 0);
    say("mode %o links %d", meta.st_mode & 07777, (int)meta.st_nlink);
    RESULT(mkdir("sub/one/", 0755));
    RESULT(mkdir("sub/two", 01777));
    need(stat("sub", &meta) == 0);
    show("links", meta.st_nlink);
    need(stat("sub/two", &meta) == 0);
    say("sticky mode %o", meta.st_mode & 07777);
    RESULT(mkdir("sub", 0755));
    RESULT(mkdir("absent/three", 0755));
    RESULT(mkdir(".", 0755));
    RESULT(mkdir("/", 0755));
    RESULT(mkdir("", 0755));
    put_file("file", "", 0600);
    RESULT(mkdir("file", 0755));
    RESULT(mkdir("file/x", 0755));
    RESULT(rmdir("sub/one"));
    need(stat("sub", &meta) == 0);
    show("links after rmdir", meta.st_nlink);
    return 0;
}
