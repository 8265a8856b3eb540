/*
 * rename(2), renameat2(2): moving a directory to another place changes its "..", so it needs write permission to the
 * directory itself, also where it is exchanged for something. In the same place only the name changes.
 */
#include "security.h"
#include <linux/fs.h>

static long exchange(const char *one, const char *other)
{
    return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

static int attempt(void *unused)
{
    (void)unused;
    put_file("b/file", "x", 0644);
    need(mkdir("b/own", 0755) == 0);
    OUTCOME(rename("a/roots", "b/roots"));
    OUTCOME(exchange("a/roots", "b/file"));
    OUTCOME(exchange("b/file", "a/roots"));
    OUTCOME(exchange("b/own", "a/roots"));
    OUTCOME(exchange("a/roots", "b/own"));
    OUTCOME(exchange("b/own", "b"));
    OUTCOME(exchange("b", "b/own"));
    OUTCOME(exchange("b/own", "b/own/missing"));
    check(access("a/roots/secret", F_OK) == 0, "root's directory is where it was");
    OUTCOME(rename("a/roots", "a/renamed"));
    put_file("a/beside", "x", 0644);
    OUTCOME(exchange("a/beside", "a/renamed"));
    OUTCOME(rmdir("a/beside"));
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && mkdir("a/roots", 0755) == 0);
    put_file("a/roots/secret", "s", 0600);
    need(chown("a", NOBODY, NOBODY) == 0 && chown("b", NOBODY, NOBODY) == 0 && chown(".", NOBODY, NOBODY) == 0);
    as_nobody(attempt, NULL);
    return 0;
}
