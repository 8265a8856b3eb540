/*
 * dup3(2), fcntl(2), close_range(2), pipe2(2), readv(2), pread(2), ioctl(2): numbers, flags and vectors that are
 * refused.
 */
#include "contract.h"
#include <sys/ioctl.h>
#include <sys/resource.h>

int main(void)
{
    scratch();
    put_file("file", "0123456789", 0600);
    int fd = open("file", O_RDWR), only = open("file", O_RDONLY), path = open("file", O_PATH), ends[2];
    char buffer[64];
    struct rlimit limit = { 64, 64 };
    need(pipe(ends) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
    section("dup");
    RESULT(dup3(fd, fd, 0));
    RESULT(dup3(fd, 20, 1));
    RESULT(dup3(-1, 20, 0));
    RESULT(dup3(fd, 64, 0));
    RESULT(dup3(fd, -1, 0));
    RESULT(dup2(fd, 64));
    RESULT(dup2(999, 999));
    RESULT(dup(999));
    section("fcntl");
    RESULT(fcntl(999, F_GETFD));
    RESULT(fcntl(fd, 9999));
    RESULT(fcntl(fd, F_DUPFD, 64));
    RESULT(fcntl(fd, F_DUPFD, -1));
    RESULT(fcntl(fd, F_SETOWN, 0x3fffffff));
    RESULT(fcntl(fd, F_SETOWN, INT_MIN));
    RESULT(fcntl(fd, F_SETSIG, 65));
    RESULT(fcntl(fd, F_SETSIG, -1));
    RESULT(fcntl(fd, F_GETLK, BAD_POINTER));
    RESULT(fcntl(fd, F_SETLK, BAD_POINTER));
    struct flock lock = { .l_type = 7 }, whence = { .l_type = F_WRLCK, .l_whence = 9 };
    struct flock before = { .l_type = F_WRLCK, .l_start = -1 };
    RESULT(fcntl(fd, F_SETLK, &lock));
    RESULT(fcntl(fd, F_SETLK, &whence));
    RESULT(fcntl(fd, F_SETLK, &before));
    RESULT(fcntl(fd, F_GETPIPE_SZ));
    RESULT(fcntl(fd, F_SETPIPE_SZ, 4096));
    RESULT(fcntl(path, F_GETFL) & O_PATH);
    RESULT(fcntl(path, F_SETFL, 0));
    RESULT(fcntl(path, F_GETFD));
    RESULT(fcntl(fd, F_GET_SEALS));
    RESULT(fcntl(fd, F_SETFL, O_DIRECT | O_NONBLOCK | O_WRONLY | O_CREAT));
    show("flags", fcntl(fd, F_GETFL) & (O_NONBLOCK | O_ACCMODE | O_CREAT));
    section("close_range");
    RESULT(syscall(SYS_close_range, 30, 20, 0));
    RESULT(syscall(SYS_close_range, 30, 40, 1));
    RESULT(syscall(SYS_close_range, 30, 40, 8));
    RESULT(syscall(SYS_close_range, 30, 40, 0));
    section("vectors");
    struct iovec one = { buffer, 4 }, negative = { buffer, -1 }, bad = { BAD_POINTER, 4 };
    struct iovec two[2] = { { buffer, 4 }, { BAD_POINTER, 4 } },
        huge[2] = { { buffer, SSIZE_MAX }, { buffer, SSIZE_MAX } };
    RESULT(readv(fd, &one, 0));
    RESULT(readv(fd, &one, -1));
    RESULT(readv(fd, &one, 1025));
    RESULT(readv(fd, &negative, 1));
    RESULT(readv(fd, &bad, 1));
    RESULT(readv(fd, two, 2));
    RESULT(writev(ends[1], huge, 2) > 0);
    RESULT(readv(fd, BAD_POINTER, 1));
    RESULT(readv(999, BAD_POINTER, 1));
    RESULT(writev(only, &one, 1));
    RESULT(preadv(fd, &one, 1, -1));
    RESULT(preadv(ends[0], &one, 1, 0));
    section("read and write");
    RESULT(pread(fd, buffer, 4, -1));
    RESULT(pread(ends[0], buffer, 4, 0));
    RESULT(pwrite(ends[1], buffer, 4, 0));
    RESULT(read(path, buffer, 4));
    RESULT(write(only, buffer, 4));
    RESULT(write(only, BAD_POINTER, 4));
    RESULT(read(ends[1], buffer, 4));
    RESULT(write(ends[0], buffer, 4));
    RESULT(read(fd, BAD_POINTER, 0));
    RESULT(lseek(ends[0], 0, SEEK_SET));
    RESULT(lseek(fd, 0, 9));
    RESULT(lseek(fd, -1, SEEK_SET));
    RESULT(lseek(path, 0, SEEK_SET));
    RESULT(ftruncate(only, 0));
    RESULT(ftruncate(fd, -1));
    RESULT(ftruncate(ends[1], 0));
    RESULT(truncate("file", -1));
    RESULT(truncate("missing", -1));
    RESULT(ftruncate(999, -1));
    section("ioctl, sync, advice");
    int value;
    RESULT(ioctl(fd, 0xdead, &value));
    RESULT(ioctl(path, FIONREAD, &value));
    RESULT(ioctl(999, FIONREAD, &value));
    RESULT(ioctl(fd, FIONREAD, BAD_POINTER));
    RESULT(fsync(999));
    RESULT(fsync(ends[0]));
    RESULT(fdatasync(path));
    RESULT(syscall(SYS_fadvise64, fd, 0, 0, 77));
    RESULT(syscall(SYS_fadvise64, ends[0], 0, 0, 0));
    RESULT(syscall(SYS_fadvise64, 999, 0, 0, 0));
    RESULT(syscall(SYS_fallocate, fd, 0, -1, 4));
    RESULT(syscall(SYS_fallocate, fd, 0, 0, 0));
    RESULT(syscall(SYS_fallocate, only, 0, 0, 4));
    RESULT(syscall(SYS_fallocate, ends[1], 0, 0, 4));
    RESULT(syscall(SYS_fallocate, fd, 0x1000, 0, 4));
    RESULT(pipe2(ends, 1));
    RESULT(syscall(SYS_pipe2, BAD_POINTER, 0));
    return 0;
}
