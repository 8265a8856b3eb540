/*
 * close_range(2): closes every descriptor in the span, holes included, or marks them close-on-exec; first > last
 * is EINVAL.
 */
#include "../contract.h"

#define CLOSE_RANGE_CLOEXEC_FLAG 4
static long close_range_(unsigned first, unsigned last, unsigned flags)
{
    return syscall(SYS_close_range, first, last, flags);
}

static void show_open(void)
{
    for (int fd = 50; fd < 56; fd++)
        RESULT(fcntl(fd, F_GETFD));
}

int main(void)
{
    for (int fd = 50; fd < 56; fd++)
        if (fd != 53)
            need(dup2(1, fd) == fd);
    RESULT(close_range_(52, 54, CLOSE_RANGE_CLOEXEC_FLAG));
    show_open();
    RESULT(close_range_(51, 54, 0));
    show_open();
    RESULT(close_range_(60, 50, 0));
    RESULT(close_range_(60, 61, 0x80));
    RESULT(close_range_(50, ~0U, 0));
    show_open();
    return 0;
}
