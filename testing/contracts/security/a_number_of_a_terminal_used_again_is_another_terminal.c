/*
 * pts(4): the name of a terminal that is gone leads nowhere, also for one who kept it: an ordinary user who opened his
 * own terminal by O_PATH does not reach the one that another user gets under the same number.
 */
#include "security.h"
#include <sys/ioctl.h>
#include <termios.h>

static int go[2], done[2];

static int make_terminal(char *name, size_t size)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    need(master != -1 && unlockpt(master) == 0 && ptsname_r(master, name, size) == 0);
    return master;
}

/* Keeps the name of a terminal of its own, and opens it when the number is another user's. */
static int attempt(void *unused)
{
    char name[64], kept[64], text[64];
    int master = make_terminal(name, sizeof name);
    int path = open(name, O_PATH);
    need(path != -1);
    snprintf(kept, sizeof kept, "/proc/self/fd/%d", path);
    close(master);
    need(write(done[1], name, sizeof name) == sizeof name);
    await(go[0]);
    int fd = open(kept, O_RDWR | O_NOCTTY | O_NONBLOCK);
    say("the kept name: %s", fd == -1 ? errno_name(errno) : "opened");
    fd = fd == -1 ? open(name, O_RDWR | O_NOCTTY | O_NONBLOCK) : fd;
    say("the new name: %s", fd == -1 ? errno_name(errno) : "opened");
    if (fd != -1) {
        ssize_t got = read(fd, text, sizeof text);
        say("bytes typed by another: %zd", got);
        say("bytes shown to another: %zd", write(fd, "forged\n", 7));
    }
    tell(done[1]);
    return unused != NULL;
}

int main(void)
{
    char stale[64], name[64];
    need(pipe(go) == 0 && pipe(done) == 0);
    struct attempt what = { attempt, NULL };
    pid_t child = spawn(run_as_nobody, &what);
    need(read(done[0], stale, sizeof stale) == sizeof stale);
    int master = make_terminal(name, sizeof name);
    need(strcmp(stale, name) == 0 && fchmodat(AT_FDCWD, name, 0600, 0) == 0);
    need(write(master, "secret\n", 7) == 7);
    tell(go[1]);
    await(done[0]);
    show_status("attempt", reap(child));
    return 0;
}
