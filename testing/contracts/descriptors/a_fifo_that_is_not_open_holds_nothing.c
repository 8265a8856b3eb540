/*
 * fifo(7), pipe(7): the pipe behind a FIFO is there as long as an end is open. Afterwards it counts for no user's
 * pipe-user-pages-soft, and the next that opens the FIFO gets one of the usual capacity.
 */
#include "../security/security.h"

static int opens_many(void *unused)
{
    int ends[2];
    (void)unused;
    /* As many pipes as the soft limit has room for (16,384 pages of 16 each), and some more. */
    for (int number = 0; number < 1100; number++) {
        char name[16];
        snprintf(name, sizeof name, "fifo%d", number);
        need(mkfifo(name, 0600) == 0);
        int end = open(name, O_RDWR | O_NONBLOCK);
        need(end != -1);
        close(end);
    }
    need(pipe(ends) == 0);
    show("capacity of a pipe", fcntl(ends[0], F_GETPIPE_SZ));
    return 0;
}

int main(void)
{
    scratch();
    need(chmod(".", 0777) == 0);
    section("a pipe after many FIFOs were open");
    show_status("the user", as_nobody(opens_many, NULL));
    section("a FIFO that was made small while it was open");
    need(mkfifo("small", 0600) == 0);
    int end = open("small", O_RDWR | O_NONBLOCK);
    RESULT(fcntl(end, F_SETPIPE_SZ, 4096));
    close(end);
    end = open("small", O_RDWR | O_NONBLOCK);
    RESULT(fcntl(end, F_GETPIPE_SZ));
    return 0;
}
