/*
 * fcntl(2): ENOLCK where there are too many locks. A release that splits a lock may be refused with it, and then
 * changes nothing; a release that splits none, a lock that replaces one's own and the close of the file always work.
 * contract: timeout=60
 */
#include "security.h"

enum { SPLITS = 40000 };

static int change(int fd, int kind, off_t start, off_t length)
{
    struct flock lock = { .l_type = kind, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
    return fcntl(fd, F_SETLK, &lock);
}

static const char *held(int fd, off_t start)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = 1 };
    need(fcntl(fd, F_GETLK, &lock) == 0);
    return lock.l_type == F_UNLCK ? "free" : "locked";
}

static int looks(void *from)
{
    int fd = open("file", O_RDWR);
    need(fd != -1);
    say("byte %lld is %s", (long long)*(off_t *)from, held(fd, *(off_t *)from));
    return 0;
}

static void look(off_t at) { need(in_child(looks, &at) == 0); }

static int attempt(void *unused)
{
    (void)unused;
    int fd = open("file", O_RDWR), wrong = 0;
    off_t refused = 0;
    need(fd != -1);
    RESULT(change(fd, F_WRLCK, 0, 0));
    for (off_t at = 2 * SPLITS; at > 0 && !refused; at -= 2)
        if (change(fd, F_UNLCK, at, 1) == -1) {
            wrong += errno != ENOLCK;
            refused = at;
        }
    show("refused with something else", wrong);
    section("full");
    RESULT(change(fd, F_WRLCK, 0, 1));
    RESULT(change(fd, F_UNLCK, 0, 1));
    RESULT(change(fd, F_WRLCK, 0, 1));
    RESULT(change(fd, F_RDLCK, 2 * SPLITS + 1, 0));
    RESULT(change(fd, F_UNLCK, 2 * SPLITS + 1, 0));
    look(0);
    look(1);
    look(2 * SPLITS);
    look(2 * SPLITS + 1);
    section("closed");
    close(open("file", O_RDWR));
    look(1);
    RESULT(change(fd, F_WRLCK, 0, 0));
    RESULT(change(fd, F_UNLCK, 5, 1));
    look(5);
    look(6);
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "text", 0666);
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
