/*
 * clone(2): CLONE_VM shares memory, CLONE_FILES the descriptor table, CLONE_FS the directory and umask, SIGHAND
 * needs VM.
 */
#include "../contract.h"

static volatile int value;
static char stack[65536] __attribute__((aligned(16)));

static int change(void *unused)
{
    (void)unused;
    value++;
    close(100);
    umask(0);
    return chdir("/") ? 1 : 0;
}

static void try_flags(const char *name, int flags)
{
    char path[64];
    value = 0;
    need(dup2(1, 100) == 100 && chdir(scratch_path) == 0);
    umask(022);
    pid_t child = clone(change, stack + sizeof stack, flags | SIGCHLD, NULL);
    need(child != -1);
    int status = reap(child);
    need(getcwd(path, sizeof path));
    say("%s: status %d memory %d files %d fs %d umask %o", name, status, value, fcntl(100, F_GETFD) == -1,
        strcmp(path, "/") == 0, umask(022));
}

int main(void)
{
    scratch();
    try_flags("nothing shared", 0);
    try_flags("CLONE_VM", CLONE_VM);
    try_flags("CLONE_FILES", CLONE_FILES);
    try_flags("CLONE_FS", CLONE_FS);
    try_flags("all", CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND);
    RESULT(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0));
    RESULT(syscall(SYS_clone, CLONE_THREAD | SIGCHLD, 0, 0, 0, 0));
    RESULT(syscall(SYS_clone, CLONE_FS | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0));
    return 0;
}
