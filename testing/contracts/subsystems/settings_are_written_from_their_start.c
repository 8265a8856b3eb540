/*
 * proc(5), sysctl_writes_strict: a number of /proc/sys is written at offset 0; at another the write counts and does
 * nothing. A name is continued where the write begins, if it is that long. To a score of a process it is as at 0.
 */
#include "../contract.h"
#include <sys/utsname.h>

static void try(const char *path, const char *text, off_t at)
{
    char now[128] = "";
    int fd = open(path, O_WRONLY);
    need(fd != -1);
    errno = 0;
    ssize_t written = pwrite(fd, text, strlen(text), at);
    int failed = errno;
    close(fd);
    need(get_file(path, now, sizeof now) >= 0);
    now[strcspn(now, "\n")] = 0;
    say("%s, \"%.12s\" at %ld: %zd %s, now %s", path, text, (long)at, written, written < 0 ? errno_name(failed) : "",
        now);
}

static void twice(const char *path, const char *first, const char *second)
{
    char now[128] = "";
    int fd = open(path, O_WRONLY);
    need(fd != -1);
    RESULT(write(fd, first, strlen(first)));
    RESULT(write(fd, second, strlen(second)));
    close(fd);
    need(get_file(path, now, sizeof now) >= 0);
    now[strcspn(now, "\n")] = 0;
    say("%s: %s", path, now);
}

int main(void)
{
    struct utsname before;
    need(uname(&before) == 0);
    section("numbers");
    try("/proc/sys/fs/pipe-user-pages-soft", "20000\n", 0);
    try("/proc/sys/fs/pipe-user-pages-soft", "300", 1);
    try("/proc/sys/fs/pipe-user-pages-soft", "no number", 7);
    try("/proc/sys/fs/pipe-user-pages-soft", "no number", 0);
    twice("/proc/sys/fs/pipe-user-pages-soft", "1", "6384");
    try("/proc/sys/fs/pipe-user-pages-soft", "16384", 0);
    section("names");
    try("/proc/sys/kernel/hostname", "first\n", 0);
    try("/proc/sys/kernel/hostname", "nally\nmore", 2);
    try("/proc/sys/kernel/hostname", "!", 7);
    try("/proc/sys/kernel/hostname", "!", 9);
    twice("/proc/sys/kernel/hostname", "one", "two");
    try("/proc/sys/kernel/hostname", "0123456789012345678901234567890123456789012345678901234567890123456789", 0);
    try("/proc/sys/kernel/hostname", "", 0);
    section("of a process");
    try("/proc/self/oom_score_adj", "7", 1);
    need(sethostname(before.nodename, strlen(before.nodename)) == 0);
    return 0;
}
