/* unshare(2): CLONE_FILES and CLONE_FS end the sharing that clone began; close_range can unshare too. */
#include "../contract.h"

static char stack[65536] __attribute__((aligned(16)));

static int sharer(void *unused)
{
    (void)unused;
    close(70);
    if (unshare(CLONE_FILES | CLONE_FS))
        return 1;
    close(71);
    umask(0123);
    return chdir("/proc") ? 2 : 0;
}

static int ranger(void *unused)
{
    (void)unused;
    return syscall(SYS_close_range, 60, 80, 2 /* CLOSE_RANGE_UNSHARE */) ? 1 : fcntl(71, F_GETFD) != -1;
}

int main(void)
{
    char path[64];
    scratch();
    need(dup2(1, 70) == 70 && dup2(1, 71) == 71);
    umask(022);
    pid_t child = clone(sharer, stack + sizeof stack, CLONE_FILES | CLONE_FS | CLONE_VM | SIGCHLD, NULL);
    need(child != -1);
    show_status("sharer", reap(child));
    RESULT(fcntl(70, F_GETFD));
    RESULT(fcntl(71, F_GETFD));
    say("umask %o, directory kept %d", umask(022), getcwd(path, sizeof path) && strcmp(path, scratch_path) == 0);
    child = clone(ranger, stack + sizeof stack, CLONE_FILES | CLONE_VM | SIGCHLD, NULL);
    show_status("ranger", reap(child));
    RESULT(fcntl(71, F_GETFD));
    RESULT(unshare(0));
    RESULT(unshare(CLONE_THREAD));
    return 0;
}
