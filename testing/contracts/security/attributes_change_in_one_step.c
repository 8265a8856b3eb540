/*
 * chown(2), chmod(2), utimensat(2): the check of a caller and the change are one step. An owner's change that was
 * allowed before root took the file over does not land after it: neither the old owner nor a set-user-ID bit comes
 * back.
 */
#include "security.h"

#define ROUNDS 3000

static int interfere(void *unused)
{
    (void)unused;
    for (;;) {
        chown("file", -1, -1);
        chmod("file", 04777);
        chown("file", -1, NOBODY);
    }
    return 0;
}

int main(void)
{
    int owners = 0, modes = 0;
    scratch();
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    need(fd != -1 && chmod(".", 0755) == 0);
    pid_t user = fork();
    need(user != -1);
    if (user == 0) {
        become_nobody();
        _exit(interfere(NULL));
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct stat meta;
        need(fchmod(fd, 0600) == 0 && fchown(fd, NOBODY, NOBODY) == 0);
        for (volatile int wait = round % 97 * 8; wait > 0; wait--)
            ;
        need(fchown(fd, 0, 0) == 0 && fchmod(fd, 0600) == 0);
        for (int look = 0; look < 4; look++) {
            need(fstat(fd, &meta) == 0);
            owners += meta.st_uid != 0 || meta.st_gid != 0;
            modes += (meta.st_mode & 07777) != 0600;
        }
    }
    kill(user, SIGKILL);
    reap(user);
    say("owner after root took the file over: %s", owners ? "changed" : "root");
    say("mode after root took the file over: %s", modes ? "changed" : "0600");
    return 0;
}
