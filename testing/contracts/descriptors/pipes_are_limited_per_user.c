/*
 * pipe(7): an ordinary user's pipes have 16 pages until the user has pipe-user-pages-soft (16384) of them, then one
 * or two; F_SETPIPE_SZ beyond that or beyond pipe-max-size is EPERM; the room counts back when a pipe goes, and
 * root is not bound.
 */
#include "contract.h"
#include <sys/resource.h>

static int user(void *unused)
{
    (void)unused;
    static int ends[1200][2];
    struct rlimit limit = { 4096, 4096 };
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    need(setresgid(65531, 65531, 65531) == 0 && setresuid(65531, 65531, 65531) == 0);
    int first_small = -1;
    for (int i = 0; i < 1030; i++) {
        need(pipe(ends[i]) == 0);
        if (first_small == -1 && fcntl(ends[i][0], F_GETPIPE_SZ) < 65536)
            first_small = i;
    }
    show("first small pipe", first_small);
    show("bytes of the last", fcntl(ends[1029][0], F_GETPIPE_SZ));
    RESULT(fcntl(ends[1029][0], F_SETPIPE_SZ, 65536));
    RESULT(fcntl(ends[0][0], F_SETPIPE_SZ, 131072));
    RESULT(fcntl(ends[0][0], F_SETPIPE_SZ, 4096));
    RESULT(fcntl(ends[1][0], F_SETPIPE_SZ, 1 << 21));
    for (int i = 0; i < 1000; i++)
        close(ends[i][0]), close(ends[i][1]);
    RESULT(fcntl(ends[1029][0], F_SETPIPE_SZ, 65536));
    RESULT(fcntl(ends[1028][0], F_SETPIPE_SZ, 1 << 20));
    int fresh[2];
    need(pipe(fresh) == 0);
    RESULT(fcntl(fresh[0], F_GETPIPE_SZ));
    return 0;
}

int main(void)
{
    int ends[2];
    char text[64];
    need(pipe(ends) == 0);
    RESULT(fcntl(ends[0], F_SETPIPE_SZ, 0));
    RESULT(fcntl(ends[0], F_SETPIPE_SZ, 1));
    RESULT(fcntl(ends[0], F_SETPIPE_SZ, 5000));
    RESULT(fcntl(ends[0], F_SETPIPE_SZ, -1));
    RESULT(fcntl(ends[0], F_SETPIPE_SZ, 1 << 21));
    const char *names[] = { "/proc/sys/fs/pipe-user-pages-soft", "/proc/sys/fs/pipe-user-pages-hard",
        "/proc/sys/fs/pipe-max-size" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (get_file(names[i], text, sizeof text) > 0)
            say("%s = %.*s", names[i], (int)strcspn(text, "\n"), text);
    show_status("user", in_child(user, NULL));
    return 0;
}
