/*
 * execve(2): the set-id bits of a program are without effect when root and working directory are shared with another
 * process (CLONE_FS), which could move them under the program.
 */
#include "security.h"

static int attempt(void *flags)
{
    pid_t child = syscall(SYS_clone, *(unsigned long *)flags | SIGCHLD, 0, 0, 0, 0);
    need(child != -1);
    if (child == 0) {
        execl("./program", "program", "report", NULL);
        _exit(99);
    }
    show_status("program", reap(child));
    return 0;
}

static void *threads_share_it(void *unused)
{
    sleep_ms(10000);
    return unused;
}

static int with_thread(void *unused)
{
    (void)unused;
    pthread_t thread;
    need(pthread_create(&thread, NULL, threads_share_it, NULL) == 0);
    execl("./program", "program", "report", NULL);
    return 99;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        say("user %d, effective %d, group %d", (int)getuid(), (int)geteuid(), (int)getegid());
        return 0;
    }
    scratch();
    copy_self("program", 1000, 1000, 06755);
    unsigned long own = 0, shared = CLONE_FS, both = CLONE_FS | CLONE_FILES;
    section("own");
    as_nobody(attempt, &own);
    section("shared");
    as_nobody(attempt, &shared);
    as_nobody(attempt, &both);
    section("shared, by root");
    in_child(attempt, &shared);
    section("with a thread of the same process");
    as_nobody(with_thread, NULL);
    return 0;
}
