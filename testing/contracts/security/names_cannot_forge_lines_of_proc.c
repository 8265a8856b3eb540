/*
 * proc(5): a name that a user chose is one field of one line of /proc/PID/maps, status and mounts, whatever is in it:
 * newlines are escaped there. Who reads another's files believes what the kernel says in them.
 */
#include "security.h"
#include <sys/mount.h>

static char text[1 << 16];

/* Prints the lines of a file that hold `part`, from there on. */
static void lines_with(const char *path, const char *part)
{
    need(get_file(path, text, sizeof text) > 0);
    int found = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *at = strstr(line, part);
        if (at)
            say("%s: %s", path, at);
        found += at != NULL;
    }
    show("lines", found);
}

static int attempt(void *unused)
{
    (void)unused;
    static const char name[] = "forged\n00400000-00401000 rwxp 00000000 00:00 0 \\ \x1b[2J";
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    need(fd != -1 && ftruncate(fd, PAGE) == 0);
    char *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    need(at != MAP_FAILED);
    lines_with("/proc/self/maps", "forged");
    lines_with("/proc/self/maps", "00400000-00401000 rwxp");
    need(prctl(PR_SET_NAME, "x\nUid:\t0\t\\\x1b") == 0);
    lines_with("/proc/self/status", "Name:");
    lines_with("/proc/self/status", "Uid:\t0");
    need(get_file("/proc/self/comm", text, sizeof text) > 0);
    check(!strcmp(text, "x\nUid:\t0\t\\\x1b\n"), "comm holds the name as it is");
    need(get_file("/proc/self/stat", text, sizeof text) > 0);
    check(strstr(text, " (x\nUid:\t0\t\\\x1b) ") != NULL, "and so does stat");
    return 0;
}

int main(void)
{
    scratch();
    need(chmod(".", 0777) == 0 && mkdir("with space\nand \\ line", 0755) == 0);
    as_nobody(attempt, NULL);
    need(mount("no\nsource", "with space\nand \\ line", "tmpfs", 0, NULL) == 0);
    for (const char **at = (const char *[]){ "/proc/self/mounts", "/proc/self/mountinfo", NULL }; *at; at++) {
        need(get_file(*at, text, sizeof text) > 0);
        check(strstr(text, "with\\040space\\012and\\040\\134\\040line ") != NULL, "the place is one field");
        check(strstr(text, "no\\012source ") != NULL, "and so is the source");
    }
    need(umount2("with space\nand \\ line", MNT_DETACH) == 0);
    return 0;
}
