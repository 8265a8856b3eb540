/* memfd_create(2): gives a growable file with no directory entry; seals refuse later changes and cannot be undone. */
#include "../contract.h"

int main(void)
{
    int fd = memfd_create("note", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    struct stat meta;
    need(fd != -1 && fstat(fd, &meta) == 0);
    show("links", meta.st_nlink);
    show("regular file", S_ISREG(meta.st_mode));
    say("mode %o", meta.st_mode & 07777);
    char link[64] = { 0 }, path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    need(readlink(path, link, sizeof link - 1) > 0);
    show_text("link", link);
    RESULT(write(fd, "hello", 5));
    RESULT(fcntl(fd, F_GET_SEALS));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    RESULT(ftruncate(fd, 1));
    RESULT(ftruncate(fd, 10));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_WRITE));
    RESULT(ftruncate(fd, 20));
    RESULT(pwrite(fd, "x", 1, 0));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    int plain = memfd_create("plain", 0);
    RESULT(fcntl(plain, F_ADD_SEALS, F_SEAL_SHRINK));
    RESULT(memfd_create("x", 0x4000));
    OUTCOME(memfd_create(BAD_POINTER, 0));
    return 0;
}
