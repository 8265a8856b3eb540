/*
 * proc(5): what was opened in /proc of a process before it executed a set-user-ID program shows nothing of that
 * program.
 */
#include "security.h"

static int await_go[2], at_end[2];

static int attempt(void *unused)
{
    (void)unused;
    static const char *const names[] = { "maps", "smaps", "environ", "auxv" };
    int fds[COUNT_OF(names)];
    char path[64], bytes[64];
    need(pipe(await_go) == 0 && pipe(at_end) == 0);
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        snprintf(path, sizeof path, "%d", at_end[1]);
        await(await_go[0]);
        execl("./program", "program", path, NULL);
        _exit(99);
    }
    for (size_t at = 0; at < COUNT_OF(names); at++) {
        snprintf(path, sizeof path, "/proc/%d/%s", child, names[at]);
        need((fds[at] = open(path, O_RDONLY)) != -1);
    }
    snprintf(path, sizeof path, "/proc/%d", child);
    int dir = open(path, O_RDONLY | O_DIRECTORY);
    snprintf(path, sizeof path, "/proc/%d/fd", child);
    int open_files = open(path, O_RDONLY | O_DIRECTORY);
    snprintf(path, sizeof path, "/proc/%d/exe", child);
    int link = open(path, O_PATH | O_NOFOLLOW);
    need(dir != -1 && open_files != -1 && link != -1);
    tell(await_go[1]);
    await(at_end[0]);
    for (size_t at = 0; at < COUNT_OF(names); at++) {
        ssize_t got = read(fds[at], bytes, sizeof bytes);
        say("%s: %s", names[at], got > 0 ? "shown" : got == 0 ? "nothing" : errno_name(errno));
        int fd = openat(dir, names[at], O_RDONLY);
        say("%s again: %s", names[at], fd == -1 ? errno_name(errno) : "ok");
        close(fd);
    }
    OUTCOME(readlinkat(dir, "exe", bytes, sizeof bytes));
    OUTCOME(readlinkat(link, "", bytes, sizeof bytes));
    OUTCOME(readlinkat(open_files, "0", bytes, sizeof bytes));
    OUTCOME(openat(open_files, "0", O_RDONLY));
    OUTCOME(openat(dir, "fd", O_RDONLY));
    tell(await_go[1]);
    kill(child, SIGKILL);
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        tell(atoi(arguments[1]));
        sleep_ms(2000);
        return 0;
    }
    scratch();
    copy_self("program", 0, 0, 04755);
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
