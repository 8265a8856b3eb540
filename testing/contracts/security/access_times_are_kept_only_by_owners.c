/*
 * fcntl(2), open(2): O_NOATIME is set only by the file's owner, or with CAP_FOWNER: EPERM. A descriptor that has it set
 * may keep it, and every holder of the descriptor may clear it.
 */
#include "security.h"

static int attempt(void *descriptor)
{
    int fd = *(int *)descriptor, roots = open("roots", O_RDONLY), mine = open("mine", O_RDONLY | O_CREAT, 0600);
    int pair[2];
    need(roots != -1 && mine != -1 && pipe(pair) == 0);
    OUTCOME(open("roots", O_RDONLY | O_NOATIME));
    OUTCOME(fcntl(roots, F_SETFL, O_NOATIME));
    check(!(fcntl(roots, F_GETFL) & O_NOATIME), "root's file has it not");
    OUTCOME(fcntl(mine, F_SETFL, O_NOATIME));
    check(fcntl(mine, F_GETFL) & O_NOATIME, "my own file has it");
    OUTCOME(fcntl(pair[0], F_SETFL, O_NOATIME));
    OUTCOME(fcntl(fd, F_SETFL, O_NOATIME | O_NONBLOCK));
    OUTCOME(fcntl(fd, F_SETFL, 0));
    OUTCOME(fcntl(fd, F_SETFL, O_NOATIME));
    return 0;
}

int main(void)
{
    scratch();
    need(chmod(".", 0777) == 0);
    put_file("roots", "text", 0644);
    int fd = open("roots", O_RDONLY | O_NOATIME);
    need(fd != -1);
    as_nobody(attempt, &fd);
    return 0;
}
