/* stat(2), inode(7): the mode tells the kind, the size counts bytes, blocks count 512-byte units in use. */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static void describe(const char *path)
{
    struct stat meta;
    if (lstat(path, &meta)) {
        say("%s: %s", path, errno_name(errno));
        return;
    }
    say("%s: kind %o mode %o links %d uid %d gid %d", path, meta.st_mode & S_IFMT, meta.st_mode & 07777,
        (int)meta.st_nlink, (int)meta.st_uid, (int)meta.st_gid);
}

int main(void)
{
    scratch();
    put_file("file", "12345", 0640);
    need(mkdir("sub", 0750) == 0 && symlink("file", "soft") == 0 && mkfifo("fifo", 0620) == 0);
    struct sockaddr_un name = { AF_UNIX, "socket" };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    need(bind(fd, (void *)&name, sizeof name) == 0);
    describe("file");
    describe("sub");
    describe("soft");
    describe("fifo");
    describe("socket");
    describe("/dev/null");
    describe("absent");
    describe("file/x");
    struct stat meta;
    need(stat("/dev/null", &meta) == 0);
    say("/dev/null is device %d:%d", (int)major(meta.st_rdev), (int)minor(meta.st_rdev));
    need(stat("/dev/zero", &meta) == 0);
    say("/dev/zero is device %d:%d", (int)major(meta.st_rdev), (int)minor(meta.st_rdev));
    need(stat("file", &meta) == 0);
    say("size %d blocks %d block size %d", (int)meta.st_size, (int)meta.st_blocks, (int)meta.st_blksize);
    RESULT(syscall(SYS_stat, "file", BAD_POINTER));
    RESULT(fstat(-1, &meta));
    RESULT(fstatat(AT_FDCWD, "", &meta, 0));
    RESULT(fstatat(fd, "", &meta, AT_EMPTY_PATH));
    RESULT(fstatat(AT_FDCWD, "file", &meta, 0x10000));
    return 0;
}
