/* proc(5): meminfo, uptime, loadavg, stat, cpuinfo, mounts, filesystems and version have the lines programs parse. */
#include "../contract.h"

static char text[65536];

static void has(const char *path, const char *const *keys)
{
    ssize_t length = get_file(path, text, sizeof text);
    if (length < 0) {
        say("%s: %s", path, errno_name(errno));
        return;
    }
    for (; *keys; keys++)
        say("%s has \"%s\": %d", path, *keys, strstr(text, *keys) != NULL);
}

int main(void)
{
    has("/proc/meminfo", (const char *const[]){ "MemTotal:", "MemFree:", "MemAvailable:", "Cached:", " kB", NULL });
    has("/proc/stat",
        (const char *const[]){ "cpu  ", "cpu0 ", "intr ", "ctxt ", "btime ", "processes ", "procs_running ", NULL });
    has("/proc/cpuinfo", (const char *const[]){ "processor\t: 0", "vendor_id\t: ", "flags\t\t: ", "cpu MHz\t\t: ",
        NULL });
    has("/proc/filesystems", (const char *const[]){ "nodev\tproc", "nodev\ttmpfs", "nodev\tsysfs", NULL });
    has("/proc/mounts", (const char *const[]){ " /proc proc ", " /sys sysfs ", NULL });
    has("/proc/self/mountinfo", (const char *const[]){ " /proc ", " - proc ", NULL });
    has("/proc/version", (const char *const[]){ "Linux version ", NULL });
    double up, idle;
    get_file("/proc/uptime", text, sizeof text);
    say("uptime has two numbers %d", sscanf(text, "%lf %lf", &up, &idle) == 2 && up > 0);
    float load[3];
    int running, total, last;
    get_file("/proc/loadavg", text, sizeof text);
    int fields = sscanf(text, "%f %f %f %d/%d %d", &load[0], &load[1], &load[2], &running, &total, &last);
    show("loadavg fields", fields);
    has("/proc/absent", (const char *const[]){ NULL });
    return 0;
}
