/*
 * proc(5), /proc/pid/comm and /proc/pid/task/tid/comm: a write sets the name to its first 15 bytes wherever the offset
 * is, moves no offset and counts whole; to a name of another process EINVAL. A name has no offsets to write at
 * (pwrite(2): ESPIPE); /proc/pid/oom_score_adj takes a number at any.
 */
#include "../contract.h"

static void show_bytes(const char *path)
{
    char now[64] = "", shown[256] = "";
    int fd = open(path, O_RDONLY);
    need(fd != -1);
    ssize_t length = read(fd, now, sizeof now - 1);
    close(fd);
    for (ssize_t at = 0, to = 0; at < length; at++)
        to += sprintf(shown + to, now[at] >= ' ' && now[at] < 127 ? "%c" : "\\%03o", (unsigned char)now[at]);
    say("  now %s", shown);
}

static void try(const char *path, const char *text, size_t length, off_t at)
{
    int fd = open(path, O_RDWR);
    need(fd != -1);
    errno = 0;
    ssize_t placed = pwrite(fd, text, length, at);
    const char *failed = placed < 0 ? errno_name(errno) : "";
    off_t sought = lseek(fd, at, SEEK_SET);
    ssize_t written = write(fd, text, length);
    say("%zu bytes at %lld: %zd %s, sought %lld: %zd %s", length, (long long)at, placed, failed, (long long)sought,
        written, written < 0 ? errno_name(errno) : "");
    close(fd);
    show_bytes(path);
}

static void all(const char *path)
{
    say("-- %s", path);
    try(path, "first", 5, 0);
    try(path, "second", 6, 3);
    try(path, "third", 5, 100);
    try(path, "sixth", 5, -1);
    try(path, "line\n", 5, 0);
    try(path, "two\nlines", 9, 0);
    try(path, " blanks  ", 9, 0);
    try(path, "\n", 1, 0);
    try(path, "a\0b", 3, 0);
    try(path, "exactly15bytes!", 15, 0);
    try(path, "exactly 16 bytes", 16, 0);
    try(path, "0123456789012345678901234567890123456789", 40, 2);
    try(path, "", 0, 0);
    try(path, "", 0, 5);
    try(path, BAD_POINTER, 4, 0);
    try(path, BAD_POINTER, 0, 0);
    try(path, BAD_POINTER, 4, 4);
    int fd = open(path, O_RDWR);
    char now[32] = "";
    need(fd != -1);
    RESULT(write(fd, "one", 3));
    RESULT(lseek(fd, 0, SEEK_CUR));
    RESULT(write(fd, "other", 5));
    RESULT(lseek(fd, 0, SEEK_CUR));
    show_bytes(path);
    RESULT(lseek(fd, 2, SEEK_SET));
    RESULT(write(fd, "sought", 6));
    RESULT(lseek(fd, 0, SEEK_CUR));
    show_bytes(path);
    RESULT(ftruncate(fd, 0));
    RESULT(pwritev(fd, &(struct iovec){ now, 2 }, 1, 1));
    show_bytes(path);
    close(fd);
    OUTCOME(fd = open(path, O_WRONLY | O_TRUNC));
    close(fd);
    OUTCOME(fd = open(path, O_WRONLY | O_APPEND));
    RESULT(write(fd, "end", 3));
    close(fd);
    show_bytes(path);
}

static int waits(void *ends)
{
    char byte;
    close(((int *)ends)[1]);
    return read(((int *)ends)[0], &byte, 1) != 0;
}

static void only_read(const char *path)
{
    int fd = open(path, O_RDONLY);
    need(fd != -1);
    say("-- %s", path);
    RESULT(pwrite(fd, "x", 1, 0));
    RESULT(pwrite(fd, "x", 1, -1));
    RESULT(write(fd, "x", 1));
    close(fd);
}

int main(void)
{
    char path[64];
    int ends[2];
    all("/proc/self/comm");
    all("/proc/thread-self/comm");
    need(pipe(ends) == 0);
    pid_t child = spawn(waits, ends);
    section("of another process");
    snprintf(path, sizeof path, "/proc/%d/comm", child);
    int fd = open(path, O_RDWR);
    need(fd != -1);
    RESULT(pwrite(fd, "theirs", 6, 5));
    RESULT(write(fd, "theirs", 6));
    RESULT(write(fd, "", 0));
    RESULT(write(fd, BAD_POINTER, 3));
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", child);
    int score = open(path, O_RDWR);
    need(score != -1);
    RESULT(pwrite(score, "3", 1, 9));
    close(ends[1]);
    siginfo_t info;
    need(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    section("that ended");
    RESULT(write(fd, "theirs", 6));
    RESULT(pwrite(score, "4", 1, 0));
    reap(child);
    section("that was waited for");
    RESULT(write(fd, "theirs", 6));
    RESULT(write(fd, "", 0));
    RESULT(pwrite(score, "5", 1, 0));
    section("scores");
    try("/proc/self/oom_score_adj", "7", 1, 3);
    try("/proc/self/oom_score_adj", "8\n", 2, 0);
    try("/proc/self/oom_score_adj", " 9 ", 3, 0);
    try("/proc/self/oom_score_adj", "", 0, 0);
    try("/proc/self/oom_score_adj", "\n", 1, 0);
    try("/proc/self/oom_score_adj", "1001", 4, 0);
    try("/proc/self/oom_score_adj", "0x10", 4, 0);
    try("/proc/self/oom_score_adj", "000000000012", 12, 0);
    try("/proc/self/oom_score_adj", "5\0006", 3, 0);
    try("/proc/self/oom_score_adj", BAD_POINTER, 1, 0);
    only_read("/proc/self/comm");
    only_read("/proc/self/environ");
    only_read("/proc/self/oom_score_adj");
    only_read("/proc/sys/kernel/hostname");
    return 0;
}
