/*
 * readv(2), RWF_APPEND: the bytes go to the end of the file, with an offset of its own and with -1, which moves the
 * file's offset behind them; and two that append at once lose nothing.
 */
#include "../contract.h"

#ifndef RWF_APPEND
#define RWF_APPEND 0x10
#endif
#define LINES 3000

static int append(int fd, const char *text, off_t at)
{
    struct iovec piece = { (void *)text, strlen(text) };
    return syscall(SYS_pwritev2, fd, &piece, 1, at, at >> 32 >> 31, RWF_APPEND);
}

static int appends(void *fd)
{
    for (int at = 0; at < LINES; at++)
        need(append(*(int *)fd, "12345678", 0) == 8);
    return 0;
}

int main(void)
{
    scratch();
    char text[64] = "";
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    need(fd != -1 && write(fd, "begin.", 6) == 6 && lseek(fd, 2, SEEK_SET) == 2);
    RESULT(append(fd, "one.", 0));
    show("offset", lseek(fd, 0, SEEK_CUR));
    RESULT(append(fd, "two.", -1));
    show("offset", lseek(fd, 0, SEEK_CUR));
    need(pread(fd, text, sizeof text - 1, 0) > 0);
    show_text("file", text);
    need(ftruncate(fd, 0) == 0);
    pid_t one = spawn(appends, &fd), other = spawn(appends, &fd);
    show_status("one", reap(one));
    show_status("other", reap(other));
    show("bytes", lseek(fd, 0, SEEK_END));
    return 0;
}
