/*
 * Documentation/admin-guide/kernel-parameters.txt (printk.devkmsg): of what a program writes to /dev/kmsg, ten lines of
 * each opening in five seconds are logged and the others vanish, unless kernel.printk_devkmsg says on or off.
 */
#include "contract.h"

#define SETTING "/proc/sys/kernel/printk_devkmsg"

static int count(const char *tag)
{
    char record[8192];
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK), found = 0;
    ssize_t got;
    need(fd != -1);
    while ((got = read(fd, record, sizeof record - 1)) > 0 || errno == EPIPE) {
        if (got <= 0)
            continue;
        record[got] = 0;
        found += strstr(record, tag) != NULL;
    }
    close(fd);
    return found;
}

static void set(const char *value)
{
    int fd = open(SETTING, O_WRONLY);
    need(fd != -1 && write(fd, value, strlen(value)) == (ssize_t)strlen(value));
    close(fd);
}

static void flood(int fd, const char *tag, int lines)
{
    char line[64];
    int full = 0;
    for (int i = 0; i < lines; i++) {
        int length = snprintf(line, sizeof line, "<7>contract %s %d\n", tag, i);
        full += write(fd, line, length) == length;
    }
    say("%d of %d lines taken, %d logged", full, lines, count(tag));
}

int main(void)
{
    static char block[2000];
    char text[64];
    need(get_file(SETTING, text, sizeof text) > 0);
    show_text("at first", strtok(text, "\n"));
    int one = open("/dev/kmsg", O_WRONLY), other = open("/dev/kmsg", O_WRONLY);
    need(one != -1 && other != -1);
    flood(one, "k1-first", 30);
    flood(one, "k1-again", 3);
    flood(other, "k1-second", 12);
    memset(block, 'x', sizeof block);
    RESULT(write(one, block, sizeof block));
    set("on\n");
    flood(one, "k1-unlimited", 30);
    set("off\n");
    RESULT(write(other, "<7>k1-nothing", 13));
    OUTCOME(open("/dev/kmsg", O_WRONLY));
    OUTCOME(open("/dev/kmsg", O_RDONLY));
    set("on\n");
    show("lines logged while it was off", count("k1-nothing"));
    int fd = open(SETTING, O_WRONLY);
    RESULT(write(fd, "perhaps", 7));
    close(fd);
    need(get_file(SETTING, text, sizeof text) > 0);
    show_text("after a word that is none", strtok(text, "\n"));
    set("ratelimit\n");
    flood(open("/dev/kmsg", O_WRONLY), "k1-third", 12);
    return 0;
}
