/*
 * contract: timeout=60
 * rename(2), unlink(2), sticky directories: a file of another user is neither replaced nor exchanged by a rename that
 * raced with its creation. The name a victim made with O_EXCL leads to his file until he takes it away.
 */
#include "security.h"
#include <linux/fs.h>

#define ROUNDS 4000

static volatile int *over;

static void *others(void *unused)
{
    while (!*over) {
        syscall(SYS_renameat2, AT_FDCWD, "mine", AT_FDCWD, "target", RENAME_EXCHANGE);
        sched_yield();
    }
    return unused;
}

/* Renames far down a deep tree: others wait for it between their judgement and their move. */
static void *deep(void *unused)
{
    int here = open("../deep", O_PATH | O_DIRECTORY);
    for (int depth = 0; depth < 1500; depth++) {
        mkdirat(here, "d", 0700);
        int next = openat(here, "d", O_PATH | O_DIRECTORY);
        need(next != -1);
        close(here);
        here = next;
    }
    mkdirat(here, "one", 0700);
    while (!*over) {
        renameat(here, "one", here, "other");
        renameat(here, "other", here, "one");
    }
    return unused;
}

static int attacker(void *unused)
{
    pthread_t threads[2];
    become_nobody();
    need(chdir("shared") == 0 && pthread_create(&threads[0], NULL, others, NULL) == 0);
    need(pthread_create(&threads[1], NULL, deep, NULL) == 0);
    while (!*over) {
        close(open("mine", O_WRONLY | O_CREAT, 0600));
        rename("mine", "target");
        unlink("target");
    }
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        pthread_join(threads[at], NULL);
    return unused != NULL;
}

static int victim(void *unused)
{
    int lost = 0, made = 0;
    (void)unused;
    become(1000, 1000);
    need(chdir("shared") == 0);
    for (int round = 0; round < 100 * ROUNDS && made < ROUNDS; round++) {
        int fd = open("target", O_RDWR | O_CREAT | O_EXCL, 0600);
        struct stat held, named;
        if (fd == -1)
            continue;
        made++;
        for (int look = 0; look < 3; look++) {
            need(fstat(fd, &held) == 0);
            if (lstat("target", &named) == -1 || named.st_ino != held.st_ino) {
                lost++;
                break;
            }
        }
        unlink("target");
        close(fd);
        /* The name is free for a while: a rename is judged by that, and moves when the next file has it. */
        for (volatile int wait = round * 37 % 3000; wait > 0; wait--)
            ;
    }
    *over = 1;
    show("names lost to another user", lost);
    return 0;
}

static int removes(void *unused)
{
    (void)unused;
    /* Taken apart from the top, which no path of bounded length could do from below. */
    int here = open("deep", O_PATH | O_DIRECTORY);
    while (here != -1) {
        int next = openat(here, "d", O_PATH | O_DIRECTORY);
        if (next == -1)
            break;
        renameat(next, "d", AT_FDCWD, "deep/next");
        unlinkat(next, "one", AT_REMOVEDIR);
        unlinkat(next, "other", AT_REMOVEDIR);
        need(unlinkat(here, "d", AT_REMOVEDIR) == 0);
        close(next);
        renameat(AT_FDCWD, "deep/next", AT_FDCWD, "deep/d");
    }
    return 0;
}

int main(void)
{
    scratch();
    over = shared_page();
    need(mkdir("shared", 0777) == 0 && chmod("shared", 01777) == 0);
    need(mkdir("deep", 0777) == 0 && chmod("deep", 0777) == 0);
    pid_t attacking = spawn(attacker, NULL);
    in_child(victim, NULL);
    show_status("the attacker", reap(attacking));
    show_status("rm", in_child(removes, NULL));
    return 0;
}
