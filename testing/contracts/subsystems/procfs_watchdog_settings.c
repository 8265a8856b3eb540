/* proc(5), Linux "Documentation for /proc/sys/kernel/": the limits of the watchdogs are read and written as numbers. */
#include "../contract.h"

static void set(const char *name, const char *value)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
    int fd = open(path, O_WRONLY);
    if (fd == -1) {
        say("%s: %s", name, errno_name(errno));
        return;
    }
    ssize_t written = write(fd, value, strlen(value));
    say("%s <- %s: %s", name, value, written < 0 ? errno_name(errno) : "taken");
    close(fd);
    need(get_file(path, text, sizeof text) > 0);
    show_text(name, strtok(text, "\n"));
}

int main(void)
{
    char text[64];
    need(get_file("/proc/sys/kernel/hung_task_timeout_secs", text, sizeof text) > 0);
    show_text("hung_task_timeout_secs", strtok(text, "\n"));
    set("hung_task_timeout_secs", "77");
    set("hung_task_timeout_secs", "x");
    set("hung_task_timeout_secs", "120");
    need(get_file("/proc/sys/kernel/watchdog_thresh", text, sizeof text) > 0);
    show_text("watchdog_thresh", strtok(text, "\n"));
    set("watchdog_thresh", "61");
    set("watchdog_thresh", "-1");
    set("watchdog_thresh", "30");
    set("watchdog_thresh", "10");
    set("watchdog", "2");
    set("watchdog", "0");
    set("watchdog", "1");
    need(get_file("/proc/sys/kernel/nmi_watchdog", text, sizeof text) > 0);
    return 0;
}
