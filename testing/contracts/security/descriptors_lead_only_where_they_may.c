/*
 * chroot(2), openat(2), proc(5), fd: a descriptor that was received or inherited gives what it was opened for. It is
 * not reopened for more through /proc/self/fd, an absolute path does not leave the root it is resolved from, and a
 * directory's descriptor leads on only with search permission.
 */
#include "security.h"
#include <sys/sendfile.h>

static long reopen(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags);
}

static int attempt(void *given)
{
    int *fds = given;
    char text[8] = "";
    int place = open("roots-readable", O_PATH);
    need(place != -1);
    section("a file opened for reading");
    OUTCOME(reopen(fds[0], O_RDONLY));
    OUTCOME(reopen(fds[0], O_RDWR));
    OUTCOME(reopen(fds[0], O_WRONLY | O_APPEND));
    OUTCOME(reopen(fds[0], O_RDONLY | O_TRUNC));
    OUTCOME(write(fds[0], "x", 1));
    OUTCOME(ftruncate(fds[0], 0));
    OUTCOME(fchmod(fds[0], 0666));
    OUTCOME(fchown(fds[0], NOBODY, NOBODY));
    OUTCOME(futimens(fds[0], NULL));
    OUTCOME(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fds[0], 0));
    section("a place");
    OUTCOME(read(place, text, 1));
    OUTCOME(write(place, "x", 1));
    OUTCOME(reopen(place, O_RDONLY));
    OUTCOME(reopen(place, O_WRONLY));
    OUTCOME(fchmod(place, 0666));
    OUTCOME(syscall(SYS_fchmodat, AT_FDCWD, "/proc/self/fd/0", 0666));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, place, 0));
    OUTCOME(ftruncate(place, 0));
    OUTCOME(syscall(SYS_execveat, place, "", NULL, NULL, AT_EMPTY_PATH));
    section("a file opened for writing");
    OUTCOME(reopen(fds[1], O_RDONLY));
    OUTCOME(read(fds[1], text, 1));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fds[1], 0));
    OUTCOME(sendfile(1, fds[1], NULL, 1));
    section("a directory none may search");
    OUTCOME(openat(fds[2], "inside", O_RDONLY));
    OUTCOME(faccessat(fds[2], "inside", F_OK, 0));
    OUTCOME(fchdir(fds[2]));
    OUTCOME(openat(fds[2], "..", O_RDONLY));
    OUTCOME(openat(fds[2], ".", O_RDONLY));
    OUTCOME(unlinkat(fds[2], "inside", 0));
    OUTCOME(openat(fds[2], "/roots-secret", O_RDONLY));
    return 0;
}

static int confined(void *given)
{
    int *fds = given;
    struct stat meta;
    need(chdir("jail") == 0 && chroot(".") == 0);
    become_nobody();
    section("confined");
    OUTCOME(stat("/inside-jail", &meta));
    OUTCOME(stat("../outside", &meta));
    OUTCOME(stat("/../../outside", &meta));
    OUTCOME(stat("link-up", &meta));
    OUTCOME(stat("link-root", &meta));
    OUTCOME(openat(fds[3], "/outside", O_RDONLY));
    OUTCOME(openat(fds[3], "link-to-root", O_RDONLY));
    OUTCOME(chroot("."));
    section("by a directory that was open before");
    OUTCOME(faccessat(fds[3], "outside", R_OK, 0));
    OUTCOME(fchdir(fds[3]));
    OUTCOME(stat("outside", &meta));
    OUTCOME(stat("/outside", &meta));
    OUTCOME(stat("jail/../jail/inside-jail", &meta));
    return 0;
}

int main(void)
{
    scratch();
    put_file("roots-readable", "r", 0644);
    put_file("roots-secret", "s", 0600);
    put_file("written", "w", 0622);
    put_file("outside", "o", 0644);
    need(mkdir("closed", 0700) == 0 && mkdir("jail", 0755) == 0);
    put_file("closed/inside", "i", 0644);
    put_file("jail/inside-jail", "j", 0644);
    need(symlink("../outside", "jail/link-up") == 0 && symlink("/outside", "jail/link-root") == 0);
    need(symlink("/inside-jail", "link-to-root") == 0);
    int fds[4] = { open("roots-secret", O_RDONLY), open("written", O_WRONLY), open("closed", O_RDONLY | O_DIRECTORY),
        open(".", O_RDONLY | O_DIRECTORY) };
    as_nobody(attempt, fds);
    in_child(confined, fds);
    return 0;
}
