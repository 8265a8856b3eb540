/*
 * execveat(2): AT_EMPTY_PATH runs an open file, even one without a name; a close-on-exec script cannot be found
 * again.
 */
#include "../contract.h"

static void run(const char *what, int fd, const char *path, int flags)
{
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = { "name", "ran", NULL }, *const none[] = { NULL };
        syscall(SYS_execveat, fd, path, argv, none, flags);
        say("%s: %s", what, errno_name(errno));
        _exit(1);
    }
    show_status(what, reap(child));
}

int main(int count, char **arguments)
{
    if (count > 1)
        return strcmp(arguments[1], "ran") ? 1 : 42;
    scratch();
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), memory = memfd_create("program", MFD_CLOEXEC);
    static char bytes[65536];
    ssize_t got;
    while ((got = read(self, bytes, sizeof bytes)) > 0)
        need(write(memory, bytes, got) == got);
    put_file("script", "#!/absent\n", 0755);
    run("open file", self, "", AT_EMPTY_PATH);
    run("memfd", memory, "", AT_EMPTY_PATH);
    run("empty path without the flag", self, "", 0);
    run("bad descriptor", -1, "", AT_EMPTY_PATH);
    run("close-on-exec script", open("script", O_RDONLY | O_CLOEXEC), "", AT_EMPTY_PATH);
    need(symlink("/proc/self/exe", "soft") == 0);
    run("link not followed", AT_FDCWD, "soft", AT_SYMLINK_NOFOLLOW);
    run("link followed", AT_FDCWD, "soft", 0);
    run("unknown flag", AT_FDCWD, "soft", 1);
    return 0;
}
