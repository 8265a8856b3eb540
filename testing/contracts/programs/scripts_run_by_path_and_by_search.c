/*
 * execvp(3), sh(1): scripts with "#!" run by path, scripts without are run by the shell, and PATH decides who is
 * found.
 */
#include "../contract.h"

static void run(const char *title, const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        execlp(path, path, "argument", NULL);
        say("%s: %s", title, errno_name(errno));
        _exit(126);
    }
    show_status(title, reap(child));
}

int main(void)
{
    scratch();
    need(mkdir("first", 0755) == 0 && mkdir("second", 0755) == 0);
    put_file("first/tool", "#!/bin/sh\necho first $1\nexit 3\n", 0755);
    put_file("second/tool", "#!/bin/sh\necho second $1\nexit 4\n", 0755);
    put_file("second/only", "#!/bin/sh -e\nfalse\necho not reached\n", 0755);
    put_file("plain", "echo no header $1\n", 0755);
    put_file("first/locked", "#!/bin/sh\necho no\n", 0644);
    put_file("second/locked", "#!/bin/sh\necho reached past a locked file\n", 0755);
    need(setenv("PATH", "first:second", 1) == 0);
    run("tool", "tool");
    run("only", "only");
    run("locked", "locked");
    run("by path", "./second/tool");
    run("absent", "absent");
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "./plain given; tool x; echo $?", NULL);
        _exit(127);
    }
    show_status("shell", reap(child));
    return 0;
}
