/* pipe(7): 65536 bytes fit; a nonblocking write of at most PIPE_BUF is all or EAGAIN, a larger one may be partial. */
#include "../contract.h"

int main(void)
{
    int ends[2];
    static char block[70000];
    RESULT(pipe2(ends, O_NONBLOCK));
    RESULT(fcntl(ends[0], F_GETPIPE_SZ));
    char byte;
    RESULT(read(ends[0], &byte, 1));
    RESULT(write(ends[1], block, sizeof block));
    RESULT(write(ends[1], block, 1));
    RESULT(read(ends[0], block, 4095));
    RESULT(write(ends[1], block, 4096));
    RESULT(read(ends[0], block, 1));
    RESULT(write(ends[1], block, 4096));
    int total = 0, got;
    while ((got = read(ends[0], block, sizeof block)) > 0)
        total += got;
    show("drained", total);
    RESULT(fcntl(ends[1], F_SETPIPE_SZ, 5000));
    RESULT(write(ends[1], block, sizeof block));
    RESULT(fcntl(ends[1], F_SETPIPE_SZ, 4096));
    RESULT(fcntl(1000, F_GETPIPE_SZ));
    return 0;
}
