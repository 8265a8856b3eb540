/*
 * linkat(2), unlinkat(2), renameat2(2), statx(2), utimensat(2), faccessat2(2), fchownat(2), openat(2), mknodat(2):
 * flags, modes and pointers that are refused, before the name is looked up or after.
 */
#include "contract.h"
#include <sys/stat.h>

int main(void)
{
    scratch();
    put_file("file", "text", 0600);
    mkdir("folder", 0700);
    symlink("file", "link");
    int fd = open("file", O_RDONLY);
    char room[512];
    section("links and names");
    RESULT(linkat(AT_FDCWD, "file", AT_FDCWD, "other", 1));
    RESULT(linkat(AT_FDCWD, "missing", AT_FDCWD, "other", 1));
    RESULT(linkat(fd, "file", AT_FDCWD, "other", 0));
    RESULT(linkat(AT_FDCWD, "folder", AT_FDCWD, "other", 0));
    RESULT(linkat(AT_FDCWD, "", AT_FDCWD, "other", 0));
    RESULT(unlinkat(AT_FDCWD, "file", 1));
    RESULT(unlinkat(AT_FDCWD, "folder", 0));
    RESULT(unlinkat(AT_FDCWD, "file", AT_REMOVEDIR));
    RESULT(unlinkat(AT_FDCWD, "folder/.", AT_REMOVEDIR));
    RESULT(unlinkat(AT_FDCWD, "folder/..", AT_REMOVEDIR));
    RESULT(unlinkat(999, "file", 0));
    RESULT(unlinkat(fd, "file", 0));
    RESULT(syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "x", 8));
    RESULT(syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "x", 3));
    RESULT(syscall(SYS_renameat2, AT_FDCWD, "missing", AT_FDCWD, "x", 8));
    RESULT(rename("folder", "folder/inside"));
    RESULT(rename("folder/.", "x"));
    RESULT(rename("file", "folder/.."));
    RESULT(symlinkat("a", AT_FDCWD, "file"));
    RESULT(symlink("", "empty"));
    RESULT(readlinkat(AT_FDCWD, "link", room, 0));
    RESULT(readlinkat(AT_FDCWD, "file", room, 10));
    RESULT(readlink("link", BAD_POINTER, 10));
    section("attributes");
    RESULT(syscall(SYS_statx, AT_FDCWD, "file", 1, 0, room));
    RESULT(syscall(SYS_statx, AT_FDCWD, "file", 0, 0x80000000u, room));
    RESULT(syscall(SYS_statx, AT_FDCWD, "file", 0x6000, 0, room));
    RESULT(syscall(SYS_statx, AT_FDCWD, "file", 0, 0, BAD_POINTER));
    RESULT(syscall(SYS_statx, 999, "", AT_EMPTY_PATH, 0, room));
    RESULT(syscall(SYS_newfstatat, AT_FDCWD, "file", room, 1));
    RESULT(syscall(SYS_newfstatat, AT_FDCWD, "", room, 0));
    RESULT(syscall(SYS_newfstatat, fd, "", room, AT_EMPTY_PATH));
    struct timespec times[2] = { { 1, 0 }, { 1, 1000000000 } };
    RESULT(utimensat(AT_FDCWD, "file", times, 0));
    RESULT(utimensat(AT_FDCWD, "file", NULL, 1));
    RESULT(syscall(SYS_utimensat, AT_FDCWD, NULL, NULL, 0));
    RESULT(syscall(SYS_utimensat, fd, NULL, NULL, AT_SYMLINK_NOFOLLOW));
    RESULT(syscall(SYS_faccessat2, AT_FDCWD, "file", 8, 0));
    RESULT(syscall(SYS_faccessat2, AT_FDCWD, "file", 0, 1));
    RESULT(syscall(SYS_faccessat2, fd, "", R_OK, AT_EMPTY_PATH));
    RESULT(access("missing", 8));
    RESULT(fchownat(AT_FDCWD, "file", 0, 0, 1));
    RESULT(fchownat(fd, "", 0, 0, AT_EMPTY_PATH));
    RESULT(fchownat(fd, "", 0, 0, 0));
    RESULT(chown("file", -1, -1));
    RESULT(chmod("file/", 0600));
    RESULT(fchmod(999, 0600));
    section("making and opening");
    RESULT(mknod("node", S_IFDIR | 0600, 0));
    RESULT(mknod("node", 0150000, 0));
    RESULT(mknod("node", 0600, 0));
    RESULT(mkdir("", 0700));
    RESULT(mkdir("file/x", 0700));
    RESULT(mkdir("folder/", 0700));
    RESULT(open("folder", O_WRONLY));
    RESULT(open("folder", O_CREAT | O_DIRECTORY, 0600) == -1);
    RESULT(open("file", O_DIRECTORY));
    RESULT(open("link", O_NOFOLLOW));
    RESULT(open("new/", O_CREAT | O_RDWR, 0600));
    RESULT(open("file/", O_RDONLY));
    RESULT(open("", O_RDONLY));
    RESULT(open("file", O_CREAT | O_EXCL, 0600));
    RESULT(open("folder", O_TMPFILE | O_RDONLY, 0600));
    RESULT(openat(999, "file", O_RDONLY));
    RESULT(openat(fd, "file", O_RDONLY));
    RESULT(open(BAD_POINTER, O_RDONLY));
    section("reading directories");
    int folder = open("folder", O_RDONLY);
    RESULT(syscall(SYS_getdents64, folder, room, 1));
    RESULT(syscall(SYS_getdents64, folder, BAD_POINTER, 512));
    RESULT(syscall(SYS_getdents64, fd, room, 512));
    RESULT(read(folder, room, 1));
    RESULT(write(folder, room, 1));
    RESULT(fchdir(fd));
    RESULT(chdir("file"));
    RESULT(chroot("file"));
    RESULT(syscall(SYS_getcwd, room, 1));
    RESULT(syscall(SYS_getcwd, BAD_POINTER, 512));
    return 0;
}
