/*
 * utimensat(2): sets nanosecond times, UTIME_OMIT keeps one, UTIME_NOW needs no value; writing updates mtime and
 * ctime.
 */
#include "../contract.h"

static void show_times(const char *path)
{
    struct stat meta;
    need(lstat(path, &meta) == 0);
    say("%s: access %lld.%09ld change %lld.%09ld", path, (long long)meta.st_atim.tv_sec, meta.st_atim.tv_nsec,
        (long long)meta.st_mtim.tv_sec, meta.st_mtim.tv_nsec);
}

int main(void)
{
    scratch();
    put_file("file", "", 0600);
    need(symlink("file", "soft") == 0);
    struct timespec times[2] = { { 1000, 5 }, { 2000, 999999999 } };
    RESULT(utimensat(AT_FDCWD, "file", times, 0));
    show_times("file");
    times[0].tv_nsec = UTIME_OMIT;
    times[1].tv_sec = 3000, times[1].tv_nsec = 7;
    RESULT(utimensat(AT_FDCWD, "file", times, 0));
    show_times("file");
    times[0] = times[1];
    RESULT(utimensat(AT_FDCWD, "soft", times, AT_SYMLINK_NOFOLLOW));
    show_times("soft");
    times[0].tv_nsec = 1000000000;
    RESULT(utimensat(AT_FDCWD, "file", times, 0));
    RESULT(utimensat(AT_FDCWD, "absent", NULL, 0));
    times[0].tv_nsec = times[1].tv_nsec = UTIME_OMIT;
    RESULT(utimensat(AT_FDCWD, "absent", times, 0));
    struct stat before, after;
    need(stat("file", &before) == 0);
    int fd = open("file", O_WRONLY);
    need(write(fd, "x", 1) == 1 && stat("file", &after) == 0);
    show("write moved the change time forward", after.st_mtim.tv_sec > before.st_mtim.tv_sec);
    show("status time not before change time", after.st_ctim.tv_sec >= after.st_mtim.tv_sec);
    return 0;
}
