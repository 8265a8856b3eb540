/*
 * sysfs(5), cgroups(7): the directories that programs probe exist, a cgroup2 tree mounts and lists us,
 * /proc/self/cgroup has three fields.
 */
#include "../contract.h"
#include <sys/mount.h>

int main(void)
{
    const char *paths[] = { "/sys/kernel", "/sys/devices", "/sys/devices/system/cpu", "/sys/class", "/sys/fs",
                            "/sys/block", "/sys/devices/system/cpu/online", "/sys/absent" };
    char text[1024];
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        say("%s: %s", paths[i], access(paths[i], F_OK) ? errno_name(errno) : "present");
    ssize_t length = get_file("/sys/devices/system/cpu/online", text, sizeof text);
    say("online begins with cpu 0 %d", length > 0 && text[0] == '0');
    scratch();
    need(mkdir("tree", 0755) == 0);
    RESULT(mount("none", "tree", "cgroup2", 0, NULL));
    length = get_file("/proc/self/cgroup", text, sizeof text);
    int lines = 0, wrong = 0;
    for (char *line = strtok(text, "\n"); length > 0 && line; line = strtok(NULL, "\n")) {
        char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        lines++;
        wrong += !second || second[1] != '/';
    }
    say("cgroup lines %d wrong %d", lines > 0, wrong);
    length = get_file("tree/cgroup.procs", text, sizeof text);
    int listed = 0;
    for (char *line = strtok(text, "\n"); length > 0 && line; line = strtok(NULL, "\n"))
        listed += atoi(line) == getpid();
    show("listed in cgroup.procs", listed);
    RESULT(umount("tree"));
    RESULT(mkdir("/sys/new", 0755));
    OUTCOME(open("/sys/new", O_WRONLY | O_CREAT, 0600));
    return 0;
}
