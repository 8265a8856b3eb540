/*
 * preadv2(2), posix_fadvise(2), fsync(2): flags are checked, offset -1 uses the position, advice and syncing
 * succeed on files only.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "abcdefgh", 0600);
    int fd = open("file", O_RDWR), ends[2];
    char text[8];
    struct iovec vector = { text, 3 };
    need(pipe(ends) == 0);
    RESULT(syscall(SYS_preadv2, fd, &vector, 1, -1L, -1L, 0));
    RESULT(lseek(fd, 0, SEEK_CUR));
    RESULT(syscall(SYS_preadv2, fd, &vector, 1, 5L, 0L, 0));
    RESULT(syscall(SYS_preadv2, fd, &vector, 1, 0L, 0L, 0x8000));
    RESULT(syscall(SYS_pwritev2, fd, &vector, 1, 0L, 0L, 0x10 /* RWF_APPEND */));
    RESULT(lseek(fd, 0, SEEK_END));
    RESULT(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    show_text("unknown advice", errno_name(posix_fadvise(fd, 0, 0, 77)));
    show_text("advice on a pipe", errno_name(posix_fadvise(ends[0], 0, 0, POSIX_FADV_NORMAL)));
    RESULT(fsync(fd));
    RESULT(fdatasync(fd));
    RESULT(fsync(ends[0]));
    RESULT(fsync(-1));
    RESULT(syscall(SYS_syncfs, fd));
    RESULT(readahead(fd, 0, 100));
    RESULT(readahead(ends[0], 0, 100));
    sync();
    return 0;
}
