/*
 * null(4), mem(4), tty(4), console(4), random(4): which device nodes an ordinary user opens, and how.
 */
#include "security.h"

static const char *const nodes[] = {
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "console", "ttyS0", "kmsg",
};

static int attempt(void *unused)
{
    char path[32];
    struct stat meta;
    for (size_t at = 0; at < COUNT_OF(nodes); at++) {
        snprintf(path, sizeof path, "/dev/%s", nodes[at]);
        if (stat(path, &meta) == -1)
            continue;
        say("%s: mode %o, owner %d", nodes[at], meta.st_mode & 07777, (int)meta.st_uid);
        for (int mode = O_RDONLY; mode <= O_RDWR; mode++) {
            int fd = open(path, mode | O_NOCTTY | O_NONBLOCK);
            say("%s: %s", mode == O_RDONLY ? "read" : mode == O_WRONLY ? "write" : "both",
                fd == -1 ? errno_name(errno) : "opened");
            close(fd);
        }
    }
    return unused != NULL;
}

int main(void)
{
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
