/*
 * path_resolution(7): repeated slashes collapse, "." and ".." walk, a trailing slash demands a directory, 4096
 * bytes is too long.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    need(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && symlink("a/b", "soft") == 0);
    put_file("a/file", "x", 0600);
    RESULT(access("a//b///", F_OK));
    RESULT(access("a/./b/../file", F_OK));
    RESULT(access("a/file/", F_OK));
    RESULT(access("a/file/.", F_OK));
    RESULT(access("a/file/..", F_OK));
    RESULT(access("a/absent/..", F_OK));
    RESULT(access("soft/..", F_OK));
    RESULT(access("soft/../file", F_OK));
    RESULT(access("/..", F_OK));
    RESULT(access("/../../..//proc", F_OK));
    struct stat one, two;
    need(stat("soft/..", &one) == 0 && stat("a", &two) == 0);
    show("\"..\" of a link's target", one.st_ino == two.st_ino);
    need(lstat("soft/", &one) == 0);
    show("a trailing slash follows the link", S_ISDIR(one.st_mode));
    static char path[5000];
    memset(path, '/', sizeof path);
    strcpy(path + 4092, "tmp");
    RESULT(access(path, F_OK));
    strcpy(path + 4093, "tmp");
    RESULT(access(path, F_OK));
    char deep[8] = "d";
    int made = 0;
    for (; made < 1200 && mkdir(deep, 0755) == 0 && chdir(deep) == 0; made++)
        ;
    show("directories below each other", made);
    char cwd[PATH_MAX + 1];
    show("getcwd", getcwd(cwd, sizeof cwd) != NULL);
    for (; made > 0; made--)
        need(chdir("..") == 0 && rmdir(deep) == 0);
    return 0;
}
