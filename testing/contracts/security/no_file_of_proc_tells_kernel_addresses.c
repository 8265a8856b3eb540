/*
 * contract: timeout=30
 * proc(5): an ordinary user finds no address of the kernel in any file below /proc that he can read, and can write
 * none that sets something up for others.
 */
#include "security.h"

static int addresses, readable;
static char text[1 << 16];

/* A word of 16 hexadecimal digits in the upper half, but for the page that all programs see there. */
static int holds_address(const char *at)
{
    for (; (at = strstr(at, "ffff")); at++) {
        size_t digits = strspn(at, "0123456789abcdef");
        if (digits == 16 && strncmp(at, "ffffffffff600000", 16) && strncmp(at, "ffffffffff601000", 16)
            && strncmp(at, "ffffffffffffffff", 16))
            return 1;
        at += digits ? digits - 1 : 0;
    }
    return 0;
}

static int look(const char *path, const struct stat *meta, int kind, struct FTW *place)
{
    (void)place;
    if (kind != FTW_F || !S_ISREG(meta->st_mode) || strstr(path, "/pagemap") || strstr(path, "kmsg")
        || strstr(path, "/task/"))
        return 0;
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ssize_t got = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    readable++;
    text[got] = 0;
    if (holds_address(text)) {
        say("an address in %s", strncmp(path, "/proc/self", 10) && strncmp(path, "/proc/1/", 8) ? path : path + 6);
        addresses++;
    }
    return 0;
}

static int attempt(void *unused)
{
    static const char *const settings[] = {
        "/proc/sysrq-trigger", "/proc/sys/kernel/printk", "/proc/sys/kernel/hostname", "/proc/sys/kernel/threads-max",
        "/proc/sys/fs/pipe-user-pages-soft", "/proc/sys/kernel/randomize_va_space", "/proc/sys/vm/mmap_min_addr",
        "/proc/sys/fs/protected_symlinks", "/proc/sys/kernel/dmesg_restrict", "/dev/kmsg",
        "/dev/console", "/dev/ttyS0", "/proc/1/oom_score_adj", "/proc/1/comm",
    };
    (void)unused;
    for (size_t at = 0; at < COUNT_OF(settings); at++)
        say("%s: %s", settings[at], open(settings[at], O_WRONLY) == -1 ? errno_name(errno) : "opened for writing");
    nftw("/proc/self/", look, 8, FTW_PHYS);
    nftw("/proc/1", look, 8, FTW_PHYS);
    nftw("/proc/sys", look, 8, FTW_PHYS);
    static const char *const files[] = {
        "cmdline", "stat", "interrupts", "meminfo", "modules", "version", "vmstat", "uptime", "filesystems", "kallsyms",
        "kcore", "iomem", "ioports", "kwab", "inject", "net/unix", "slabinfo", "timer_list",
    };
    for (size_t at = 0; at < COUNT_OF(files); at++) {
        char path[64];
        struct stat meta;
        snprintf(path, sizeof path, "/proc/%s", files[at]);
        if (stat(path, &meta) == 0)
            look(path, &meta, FTW_F, NULL);
    }
    check(readable > 20, "there was something to read");
    show("files with addresses of the kernel", addresses);
    return 0;
}

int main(void)
{
    as_nobody(attempt, NULL);
    return 0;
}
