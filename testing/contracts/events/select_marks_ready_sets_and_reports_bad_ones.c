/* select(2): leaves only ready descriptors in the sets, counts bits, EBADF for closed ones, EINVAL for bad counts. */
#include "../contract.h"
#include <sys/select.h>

int main(void)
{
    int ends[2], high;
    need(pipe(ends) == 0);
    fd_set in, out;
    struct timeval none = { 0, 0 }, shortly = { 0, 30000 };
    high = ends[1] + 1;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(ends[0], &in);
    FD_SET(ends[1], &out);
    RESULT(select(high, &in, &out, NULL, &none));
    say("in %d out %d", FD_ISSET(ends[0], &in), FD_ISSET(ends[1], &out));
    need(write(ends[1], "x", 1) == 1);
    FD_SET(ends[0], &in);
    RESULT(select(high, &in, &out, NULL, NULL));
    RESULT(select(ends[0] + 1, &in, NULL, NULL, &none));
    RESULT(select(ends[0], &in, NULL, NULL, &none));
    char byte;
    need(read(ends[0], &byte, 1) == 1);
    FD_SET(ends[0], &in);
    long long start = elapsed_ms();
    RESULT(select(high, &in, NULL, NULL, &shortly));
    check(elapsed_ms() - start >= 30, "waited at least its timeout");
    say("timeout counted down to %lld.%06ld", (long long)shortly.tv_sec, (long)shortly.tv_usec);
    say("in cleared %d", !FD_ISSET(ends[0], &in));
    FD_SET(40, &in);
    RESULT(select(41, &in, NULL, NULL, &none));
    RESULT(select(-1, NULL, NULL, NULL, &none));
    struct timeval wrong = { -1, 0 };
    RESULT(select(0, NULL, NULL, NULL, &wrong));
    RESULT(syscall(SYS_select, 5, BAD_POINTER, NULL, NULL, &none));
    return 0;
}
