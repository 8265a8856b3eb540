/*
 * Names: of what is there, of what is not, of what must stay closed, and such that no file can have.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static const char *const usual[] = {
    "a", "b", "c", "d", "d/x", "d/y", "e", "e/d", "fifo", "link", "loop1", "sock", ".", "..", "d/../a", "d/", "a/",
    "./a",
    "/tmp/fuzz/a", "//tmp//fuzz//b", "d/x/y/z", "new1", "new2", "d/new", "dangling",
};
static const char *const special[] = {
    "/", "", "/etc/passwd", "/etc/shadow", "/etc/kwab/secret", "/etc", "/bin/busybox", "/bin/fuzz", "/bin/fuzz-root",
    "/bin/true", "/root", "/root/x", "/tmp", "/dev", "/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/tty",
    "/dev/console", "/dev/ptmx", "/dev/pts/0", "/dev/shm/x", "/dev/kmsg", "/dev/mem", "/dev/fd/0", "/proc",
    "/proc/self/exe",
    "/proc/self/mem", "/proc/self/maps", "/proc/self/fd", "/proc/self/fd/3", "/proc/self/cwd/a",
    "/proc/self/root/etc/passwd",
    "/proc/self/status", "/proc/self/stat", "/proc/self/statm", "/proc/self/environ", "/proc/self/cmdline",
    "/proc/self/task",
    "/proc/self/limits", "/proc/self/oom_score_adj", "/proc/self/mounts", "/proc/self/fdinfo/3", "/proc/self/comm",
    "/proc/1/mem", "/proc/1/environ", "/proc/1/root", "/proc/1/fd", "/proc/1/maps", "/proc/1/exe", "/proc/meminfo",
    "/proc/cpuinfo", "/proc/stat", "/proc/uptime", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/proc/mounts",
    "/proc/sys/vm/overcommit_memory", "/proc/kallsyms", "/proc/self/smaps", "/proc/self/pagemap",
    "/proc/thread-self/status",
    "/sys", "/run", "/proc/self/ns", "/proc/self/wchan", "/proc/self/syscall", "/proc/self/stack", "/proc/self/auxv",
};
enum { USUAL = sizeof usual / sizeof usual[0], SPECIAL = sizeof special / sizeof special[0] };

/* What the directory starts with; several workers share it. */
void make_files(void)
{
    raw(SYS_mkdirat, AT_FDCWD, "d", 0755);
    raw(SYS_symlinkat, "a", AT_FDCWD, "link");
    raw(SYS_symlinkat, "loop2", AT_FDCWD, "loop1");
    raw(SYS_symlinkat, "loop1", AT_FDCWD, "loop2");
    raw(SYS_symlinkat, "/nowhere", AT_FDCWD, "dangling");
    long fd = raw(SYS_openat, AT_FDCWD, "a", O_RDWR | O_CREAT, 0666);
    raw(SYS_ftruncate, fd, 8 * PAGE);
    raw(SYS_close, fd);
}

/* Puts a string into scratch memory, seldom at the end of a page that nothing follows, or nowhere. */
static unsigned long place(struct step *step, const char *text, size_t length)
{
    if (chance(step, 4)) {
        say(step, "string at ");
        return choose_address(step, length);
    }
    char *at = scratch(step, length + 1);
    memcpy(at, text, length);
    at[length] = 0;
    return (unsigned long)at;
}

static unsigned long long_name(struct step *step)
{
    static const int lengths[] = { 255, 256, 4095, 4096, 4097, 5000, 300 };
    int length = lengths[below(step, 7)];
    bool folders = chance(step, 50);
    char *at = scratch(step, (size_t)length + 1);
    for (int i = 0; i < length; i++)
        at[i] = folders && i % 2 ? '/' : '.';
    at[length] = 0;
    say(step, "\"%c%c... (%d)\"", at[0], at[1], length);
    return (unsigned long)at;
}

static unsigned long of_process(struct step *step)
{
    static const char *const files[] = { "mem", "maps", "environ", "fd", "exe", "cwd", "root", "status", "stat",
        "cmdline",
        "oom_score_adj", "task", "comm", "auxv", "limits", "fd/0", "fd/3", "mounts", "io", "smaps" };
    char text[64];
    int one = below(step, 4);
    const char *file = files[below(step, sizeof files / sizeof files[0])];
    int length = snprintf(text, sizeof text, "/proc/%d/%s", program.pids[one], file);
    say(step, "\"/proc/watched%d/%s\"", one, file);
    return place(step, text, (size_t)length);
}

unsigned long choose_path(struct step *step)
{
    unsigned which = below(step, 100);
    if (which < 4)
        return long_name(step);
    if (which < 8)
        return of_process(step);
    if (which < 11)
        return choose_address(step, 8);
    const char *path = which < 65 ? usual[below(step, USUAL)] : special[below(step, SPECIAL)];
    say(step, "\"%s\"", path);
    return place(step, path, strlen(path));
}

unsigned long choose_string(struct step *step, const char *argument)
{
    static const char *const attributes[] = { "security.fuzz", "security.fuzz", "user.a", "user.b", "trusted.a",
        "security.capability", "system.posix_acl_access", "user.", "a", "" };
    static const char *const queues[] = { "fuzz-a", "fuzz-b", "fuzz-a", "", "a/b", ".", ".." };
    static const char *const kinds[] = { "tmpfs", "proc", "sysfs", "devpts", "none", "" };
    const char *const *list = attributes;
    unsigned count = sizeof attributes / sizeof attributes[0];
    if (strncmp(step->call->name, "mq_", 3) == 0) {
        list = queues;
        count = sizeof queues / sizeof queues[0];
    } else if (strcmp(argument, "filesystemtype") == 0 || strcmp(argument, "source") == 0) {
        list = kinds;
        count = sizeof kinds / sizeof kinds[0];
    }
    if (chance(step, 5))
        return long_name(step);
    const char *text = list[below(step, count)];
    say(step, "\"%s\"", text);
    return place(step, text, strlen(text));
}
