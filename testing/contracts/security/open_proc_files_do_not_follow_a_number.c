/*
 * proc(5): a directory or file of /proc/PID that is open stands for the process it was opened of. When that is gone and
 * its number is another's, it tells nothing of the other and changes nothing of it.
 */
#include "security.h"
#include <linux/sched.h>
#include <dirent.h>

static const char *const names[] = {
    "status", "stat", "statm", "cmdline", "comm", "environ", "maps", "smaps", "limits", "oom_score", "oom_score_adj",
    "wchan", "cgroup", "fd", "fdinfo", "task", "personality", "loginuid",
};
static const char *const links[] = { "exe", "cwd", "root", "fd/0", "task/self" };

static pid_t fork_as(pid_t id)
{
    struct clone_args args = { .exit_signal = SIGCHLD };
    if (id) {
        args.set_tid = (unsigned long)&id;
        args.set_tid_size = 1;
    }
    pid_t child = syscall(SYS_clone3, &args, sizeof args);
    need(child != -1);
    return child;
}

static pid_t start_as(pid_t id, int ready[2])
{
    pid_t child = fork_as(id);
    if (child == 0) {
        prctl(PR_SET_NAME, id ? "second" : "first");
        tell(ready[1]);
        for (;;)
            pause();
    }
    await(ready[0]);
    return child;
}

static const char *outcome(long got) { return got > 0 ? "something" : "nothing"; }

int main(void)
{
    char path[64], bytes[4096];
    int ready[2], files[COUNT_OF(names)], writers[2];
    static const char *const written[] = { "oom_score_adj", "comm" };
    need(pipe(ready) == 0);
    pid_t first = start_as(0, ready);
    snprintf(path, sizeof path, "/proc/%d", first);
    int directory = open(path, O_RDONLY | O_DIRECTORY), name = open(path, O_PATH);
    need(directory != -1 && name != -1);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        files[i] = openat(directory, names[i], O_RDONLY);
    for (size_t i = 0; i < COUNT_OF(written); i++)
        writers[i] = openat(directory, written[i], O_WRONLY);
    kill(first, SIGKILL);
    reap(first);
    pid_t second = start_as(first, ready);
    show("the same number", second == first);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (files[i] == -1)
            continue;
        struct stat meta;
        need(fstat(files[i], &meta) == 0);
        if (S_ISDIR(meta.st_mode))
            say("%s: %s", names[i], outcome(syscall(SYS_getdents64, files[i], bytes, sizeof bytes)));
        else
            say("%s: %s", names[i], outcome(read(files[i], bytes, 16)));
    }
    section("written");
    for (size_t i = 0; i < COUNT_OF(written); i++)
        if (writers[i] != -1)
            say("%s: %s", written[i], outcome(write(writers[i], "5", 1)));
    snprintf(path, sizeof path, "/proc/%d/comm", second);
    need(get_file(path, bytes, sizeof bytes) > 0);
    say("comm is %s", bytes);
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", second);
    need(get_file(path, bytes, sizeof bytes) > 0);
    say("oom_score_adj is %s", bytes);
    section("below the directory");
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (files[i] != -1)
            say("%s: %s, %s", names[i], outcome(openat(directory, names[i], O_RDONLY)),
                outcome(openat(name, names[i], O_RDONLY)));
    for (size_t i = 0; i < COUNT_OF(links); i++)
        say("%s: %s", links[i], outcome(readlinkat(directory, links[i], bytes, sizeof bytes)));
    say("entries: %s", outcome(syscall(SYS_getdents64, directory, bytes, sizeof bytes)));
    end_victim("second", second);
    return 0;
}
