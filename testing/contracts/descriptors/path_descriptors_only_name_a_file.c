/*
 * open(2), O_PATH: every call that would use the file's contents or state is EBADF, whatever the file is; what names
 * the file works.
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

static void contents(int fd, int out)
{
    char byte[8] = "x";
    struct iovec vector = { byte, 1 };
    struct epoll_event event = { .events = EPOLLIN };
    int epoll = epoll_create1(0);
    RESULT(read(fd, byte, 1));
    RESULT(write(fd, byte, 1));
    RESULT(readv(fd, &vector, 1));
    RESULT(pread(fd, byte, 1, 0));
    RESULT(pwrite(fd, byte, 1, 0));
    RESULT(preadv(fd, &vector, 1, 0));
    RESULT(pwritev(fd, &vector, 1, 0));
    RESULT(lseek(fd, 0, SEEK_CUR));
    RESULT(ftruncate(fd, 0));
    RESULT(fallocate(fd, 0, 0, 1));
    RESULT(fsync(fd));
    RESULT(fdatasync(fd));
    RESULT(syncfs(fd));
    RESULT(sync_file_range(fd, 0, 1, 0));
    RESULT(readahead(fd, 0, 1));
    show_text("advice", errno_name(posix_fadvise(fd, 0, 1, POSIX_FADV_NORMAL)));
    RESULT(flock(fd, LOCK_SH));
    RESULT(ioctl(fd, FIONBIO, byte));
    RESULT(ioctl(fd, FIOCLEX));
    /* Called directly: on EBADF musl goes on by the name in /proc, which would change /dev/null for later contracts. */
    RESULT(syscall(SYS_fchmod, fd, 0600));
    RESULT(syscall(SYS_fchown, fd, -1, -1));
    RESULT(futimens(fd, NULL));
    RESULT(fgetxattr(fd, "security.x", byte, 1));
    RESULT(fsetxattr(fd, "security.x", byte, 1, 0));
    RESULT(flistxattr(fd, byte, 1));
    RESULT(fremovexattr(fd, "security.x"));
    RESULT(sendfile(out, fd, NULL, 1));
    RESULT(sendfile(fd, out, NULL, 1));
    RESULT(copy_file_range(fd, NULL, out, NULL, 1, 0));
    RESULT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
    RESULT(syscall(SYS_getdents64, fd, byte, 8));
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    RESULT(epoll_ctl(fd, EPOLL_CTL_ADD, out, &event));
    for (int command = F_SETFL; command <= F_GETSIG; command++) {
        struct flock lock = { .l_type = F_RDLCK };
        errno = 0;
        long got = fcntl(fd, command, &lock);
        say("fcntl %d = %s", command, got == -1 ? errno_name(errno) : "ok");
    }
    close(epoll);
}

static void readiness(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };
    struct timeval none = { 0, 0 };
    RESULT(poll(&one, 1, 0));
    show("events", one.revents);
    fd_set in, out, other;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    out = other = in;
    RESULT(select(fd + 1, &in, &out, &other, &none));
}

int main(void)
{
    char byte[8];
    struct statfs system;
    struct stat meta;
    scratch();
    put_file("file", "hello", 0644);
    need(mkdir("directory", 0700) == 0 && symlink("file", "link") == 0 && mkfifo("fifo", 0600) == 0);
    int out = open("other", O_RDWR | O_CREAT, 0600), link = open("link", O_PATH | O_NOFOLLOW);
    static const char *const names[] = { "file", "directory", "fifo", "/dev/null" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        int fd = open(names[i], O_PATH);
        need(fd != -1);
        section(names[i]);
        contents(fd, out);
        readiness(fd);
        close(fd);
    }
    section("names");
    int fd = open("file", O_PATH), directory = open("directory", O_PATH);
    need(fd != -1 && directory != -1 && link != -1);
    RESULT(fstat(fd, &meta));
    RESULT(fstatfs(fd, &system));
    RESULT(fchdir(fd));
    RESULT(fcntl(fd, F_GETFL) & O_PATH);
    OUTCOME(fcntl(fd, F_DUPFD_CLOEXEC, 20));
    RESULT(fchownat(fd, "", -1, -1, AT_EMPTY_PATH));
    RESULT(readlinkat(link, "", byte, sizeof byte));
    OUTCOME(openat(directory, ".", O_RDONLY));
    OUTCOME(openat(fd, "x", O_RDONLY));
    RESULT(fchdir(directory));
    return 0;
}
