/*
 * proc(5), sysfs(5): every file of /proc and /sys that an ordinary user can open for writing, and every file of another
 * user's process that he can read.
 */
#include "security.h"
#include <dirent.h>

static pid_t victim;
static int opened;

static int skip(const char *path)
{
    return strstr(path, "/task/") || strstr(path, "/map_files") || strstr(path, "/ns/") || strstr(path, "/net/");
}

static int visit(const char *path, const struct stat *meta, int kind, struct FTW *place)
{
    (void)place;
    /* Linux lets all open ns_last_pid, and judges the write. */
    if (kind != FTW_F || skip(path) || !S_ISREG(meta->st_mode) || strstr(path, "ns_last_pid"))
        return 0;
    int fd = open(path, O_WRONLY | O_NONBLOCK);
    if (fd != -1) {
        say("writable: %s", path);
        close(fd);
    }
    opened++;
    return 0;
}

static const char *const files[] = {
    "auxv", "cmdline", "comm", "environ", "limits", "maps", "mountinfo", "oom_score_adj", "personality", "smaps",
    "stat", "statm", "status", "wchan", "fd", "fdinfo", "cwd", "root", "exe", "task", "fd/0", "fdinfo/0",
};

static int attempt(void *unused)
{
    char path[64], byte[64];
    nftw("/proc/sys", visit, 16, FTW_PHYS);
    nftw("/sys", visit, 16, FTW_PHYS);
    for (size_t at = 0; at < COUNT_OF(files); at++) {
        snprintf(path, sizeof path, "/proc/%d/%s", victim, files[at]);
        int fd = open(path, O_RDONLY | O_NONBLOCK);
        if (fd == -1) {
            /* What is not there tells nothing. */
            if (errno == ENOENT)
                continue;
            say("%s: %s", files[at], errno_name(errno));
            continue;
        }
        ssize_t got = read(fd, byte, sizeof byte);
        say("%s: opened, %s", files[at], got > 0 ? "read" : got == 0 ? "empty" : errno_name(errno));
        close(fd);
        fd = open(path, O_WRONLY | O_NONBLOCK);
        say("%s: %s for writing", files[at], fd == -1 ? errno_name(errno) : "opened");
    }
    return unused != NULL;
}

int main(void)
{
    victim = start_victim(NULL);
    show_status("attempt", as_nobody(attempt, NULL));
    end_victim("victim", victim);
    return 0;
}
