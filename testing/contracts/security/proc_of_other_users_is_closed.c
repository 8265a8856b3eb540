/*
 * proc(5), ptrace(2): memory map, environment, auxiliary vector, open files, directories, program and addresses of
 * another user's process are not shown to a caller that may not trace it.
 */
#include "security.h"
#include <dirent.h>

static pid_t victim;

static const char *path_of(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", victim, name);
    return path;
}

static void read_file(const char *name)
{
    char bytes[64];
    int fd = open(path_of(name), O_RDONLY);
    if (fd == -1)
        say("%s: open %s", name, errno_name(errno));
    else if (read(fd, bytes, sizeof bytes) == -1)
        say("%s: read %s", name, errno_name(errno));
    else
        say("%s: shown", name);
    close(fd);
}

static void read_link(const char *name)
{
    char bytes[64];
    ssize_t got = readlink(path_of(name), bytes, sizeof bytes);
    say("%s: readlink %s", name, got == -1 ? errno_name(errno) : "ok");
    int fd = open(path_of(name), O_RDONLY);
    say("%s: open %s", name, fd == -1 ? errno_name(errno) : "ok");
    close(fd);
    struct stat meta;
    say("%s: stat %s, lstat %s", name, stat(path_of(name), &meta) ? errno_name(errno) : "ok",
        lstat(path_of(name), &meta) ? errno_name(errno) : "ok");
}

static void list(const char *name)
{
    DIR *dir = opendir(path_of(name));
    say("%s: opendir %s", name, dir ? "ok" : errno_name(errno));
    if (dir)
        closedir(dir);
}

/* Fields 26 to 28 and 45 to 51 of /proc/PID/stat are addresses. */
static void addresses(void)
{
    char text[1024], *at;
    need(get_file(path_of("stat"), text, sizeof text) > 0 && (at = strrchr(text, ')')));
    unsigned long long field[53] = { 0 };
    int number = 3;
    for (char *word = strtok(at + 1, " "); word && number < 53; word = strtok(NULL, " "))
        field[number++] = strtoull(word, NULL, 10);
    say("code %d %d, stack %d, arguments %d %d, environment %d %d", field[26] > 4096, field[27] > 4096,
        field[28] > 4096, field[48] > 4096, field[49] > 4096, field[50] > 4096, field[51] > 4096);
}

static int attempt(void *unused)
{
    (void)unused;
    static const char *const files[] = { "maps", "smaps", "environ", "auxv", "personality", "fd/0", "fdinfo/0",
                                         "cmdline", "comm", "status", "statm", "limits", "oom_score_adj" };
    static const char *const links[] = { "exe", "cwd", "root", "fd/0", "cwd/file", "root/etc/passwd" };
    static const char *const directories[] = { "", "fd", "fdinfo", "task", "cwd/.", "root/." };
    for (size_t at = 0; at < COUNT_OF(files); at++)
        read_file(files[at]);
    for (size_t at = 0; at < COUNT_OF(links); at++)
        read_link(links[at]);
    for (size_t at = 0; at < COUNT_OF(directories); at++)
        list(directories[at]);
    addresses();
    OUTCOME(open(path_of("comm"), O_WRONLY));
    OUTCOME(open(path_of("oom_score_adj"), O_WRONLY));
    OUTCOME(chdir(path_of("cwd")));
    return 0;
}

static void user(void) { become_nobody(); }
static void other_user(void) { become(1000, 1000); }
static void hidden(void)
{
    become_nobody();
    need(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
}

int main(void)
{
    static const struct { const char *name; void (*prepare)(void); } victims[] = {
        { "root's", NULL }, { "another user's", other_user }, { "one's own that is not dumpable", hidden },
        { "one's own", user },
    };
    scratch();
    put_file("file", "text", 0644);
    for (size_t at = 0; at < COUNT_OF(victims); at++) {
        section(victims[at].name);
        victim = start_victim(victims[at].prepare);
        as_nobody(attempt, NULL);
        kill(victim, SIGKILL);
        reap(victim);
    }
    return 0;
}
