/*
 * getcwd(2), chdir(2): the current directory follows a rename, becomes ENOENT when removed, and needs room for its
 * path.
 */
#include "../contract.h"

static void tail(const char *what)
{
    char path[PATH_MAX];
    char *got = getcwd(path, sizeof path);
    say("%s: %s", what, got ? got + strlen(scratch_path) : errno_name(errno));
}

int main(void)
{
    scratch();
    char path[64];
    put_file("file", "", 0600);
    need(mkdir("one", 0755) == 0 && mkdir("one/two", 0755) == 0 && symlink("one/two", "soft") == 0);
    RESULT(chdir("soft"));
    tail("through a link");
    need(rename("../../one", "../../renamed") == 0);
    tail("renamed above");
    int fd = open("..", O_RDONLY);
    RESULT(fchdir(fd));
    tail("fchdir");
    RESULT(chdir("two"));
    need(rmdir("../two") == 0);
    OUTCOME(syscall(SYS_getcwd, path, sizeof path));
    OUTCOME(open("new", O_CREAT | O_WRONLY, 0600));
    RESULT(chdir(scratch_path));
    RESULT(chdir("file"));
    RESULT(chdir("absent"));
    RESULT(chdir(""));
    RESULT(chdir(BAD_POINTER));
    RESULT(fchdir(-1));
    OUTCOME(syscall(SYS_getcwd, path, 3));
    OUTCOME(syscall(SYS_getcwd, BAD_POINTER, 64));
    return 0;
}
