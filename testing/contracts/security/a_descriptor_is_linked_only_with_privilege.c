/*
 * linkat(2), AT_EMPTY_PATH: a descriptor, however it was received, is given a name only with CAP_DAC_READ_SEARCH;
 * without, it goes by the path in /proc/self/fd, which fs.protected_hardlinks judges.
 */
#include "security.h"
#include <sys/socket.h>

static long by_path(int fd, const char *name)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static int attempt(void *fds)
{
    int *given = fds;
    int own = open("own", O_RDWR | O_CREAT, 0600), place = open("own", O_PATH);
    int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
    int excluded = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600);
    need(own != -1 && place != -1 && unnamed != -1);
    OUTCOME(linkat(own, "", AT_FDCWD, "own-2", AT_EMPTY_PATH));
    OUTCOME(linkat(place, "", AT_FDCWD, "own-3", AT_EMPTY_PATH));
    OUTCOME(linkat(unnamed, "", AT_FDCWD, "unnamed-2", AT_EMPTY_PATH));
    OUTCOME(linkat(given[0], "", AT_FDCWD, "given-2", AT_EMPTY_PATH));
    OUTCOME(linkat(given[1], "", AT_FDCWD, "given-3", AT_EMPTY_PATH));
    OUTCOME(linkat(own, "", AT_FDCWD, "own-4", 0));
    OUTCOME(by_path(own, "own-5"));
    OUTCOME(by_path(place, "own-6"));
    OUTCOME(by_path(unnamed, "unnamed-3"));
    OUTCOME(by_path(excluded, "excluded"));
    OUTCOME(by_path(given[0], "given-4"));
    OUTCOME(by_path(given[1], "given-5"));
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("hidden", 0700) == 0 && chmod(".", 0777) == 0);
    put_file("hidden/readable", "x", 0644);
    put_file("hidden/writable", "x", 0666);
    int given[2] = { open("hidden/readable", O_RDONLY), open("hidden/writable", O_RDONLY) };
    as_nobody(attempt, given);
    OUTCOME(linkat(given[0], "", AT_FDCWD, "roots", AT_EMPTY_PATH));
    return 0;
}
