/*
 * fcntl(2): F_SETFL changes only append, async, direct, noatime and nonblock, and every copy of the descriptor
 * sees it.
 */
#include "../contract.h"

static void show_flags(const char *who, int fd)
{
    int flags = fcntl(fd, F_GETFL);
    say("%s: access %d append %d nonblock %d creat %d", who, flags & O_ACCMODE, !!(flags & O_APPEND),
        !!(flags & O_NONBLOCK), !!(flags & O_CREAT));
}

int main(void)
{
    scratch();
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int copy = dup(fd), other = open("file", O_WRONLY);
    show_flags("opened", fd);
    RESULT(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK | O_WRONLY | O_CREAT));
    show_flags("changed", fd);
    show_flags("its copy", copy);
    show_flags("another open", other);
    need(write(fd, "1234", 4) == 4 && lseek(fd, 0, SEEK_SET) == 0 && write(fd, "5678", 4) == 4);
    char text[16];
    get_file("file", text, sizeof text);
    show_text("appended despite the seek", text);
    RESULT(fcntl(fd, F_SETFL, 0));
    show_flags("cleared", copy);
    RESULT(fcntl(-1, F_GETFL));
    return 0;
}
