/*
 * getdents64(2): lists "." and ".." and every entry once across calls, gives kinds, and refuses tiny buffers and
 * files.
 */
#include "../contract.h"
#include <dirent.h>

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

int main(void)
{
    scratch();
    char name[16], buffer[512];
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "name%02d", i);
        put_file(name, "", 0600);
    }
    need(mkdir("sub", 0755) == 0 && symlink("x", "soft") == 0 && mkfifo("fifo", 0600) == 0);
    int fd = open(".", O_RDONLY | O_DIRECTORY), calls = 0;
    static char names[80][20];
    int count = 0, kinds[16] = { 0 };
    long got;
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0 && ++calls)
        for (long at = 0; at < got;) {
            struct dirent *entry = (void *)(buffer + at);
            strcpy(names[count++], entry->d_name);
            kinds[entry->d_type & 15]++;
            at += entry->d_reclen;
        }
    show("several calls", calls > 1);
    show("names", count);
    qsort(names, count, sizeof names[0], by_name);
    say("sorted: %s %s %s ... %s %s", names[0], names[1], names[2], names[count - 2], names[count - 1]);
    say("files %d directories %d links %d fifos %d", kinds[DT_REG], kinds[DT_DIR], kinds[DT_LNK], kinds[DT_FIFO]);
    RESULT(syscall(SYS_getdents64, fd, buffer, sizeof buffer));
    need(lseek(fd, 0, SEEK_SET) == 0);
    RESULT(syscall(SYS_getdents64, fd, buffer, 8));
    show("rewound", syscall(SYS_getdents64, fd, buffer, sizeof buffer) > 0);
    int file = open("name00", O_RDONLY);
    RESULT(syscall(SYS_getdents64, file, buffer, sizeof buffer));
    RESULT(syscall(SYS_getdents64, -1, buffer, sizeof buffer));
    return 0;
}
