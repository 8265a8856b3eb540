/*
 * tmpfs(5), nr_inodes: two threads make files in two directories of a file system that has room for one more.
 * contract: timeout=30
 */
#include "security.h"
#include <sys/mount.h>

#define ROUNDS 30000

static int present, beyond, refused[2], other_error;
static pthread_barrier_t gate;

static void *make_files(void *which)
{
    const char *path = which ? "room/two/file" : "room/one/file";
    pthread_barrier_wait(&gate);
    for (int round = 0; round < ROUNDS; round++) {
        if (mknod(path, S_IFREG | 0600, 0) == -1) {
            refused[!!which]++;
            other_error += errno != ENOSPC;
            continue;
        }
        beyond += __atomic_add_fetch(&present, 1, __ATOMIC_SEQ_CST) == 2;
        /* Long enough for the other thread to say that it has one too. */
        for (volatile int turn = 0; turn < 1000; turn++)
            ;
        __atomic_sub_fetch(&present, 1, __ATOMIC_SEQ_CST);
        if (unlink(path) == -1)
            other_error++;
    }
    return NULL;
}

static int attempt(void *unused)
{
    (void)unused;
    pthread_t other;
    need(pthread_barrier_init(&gate, NULL, 2) == 0 && pthread_create(&other, NULL, make_files, "two") == 0);
    make_files(NULL);
    need(pthread_join(other, NULL) == 0);
    show("both had a file at the same time", beyond);
    show("errors besides ENOSPC", other_error);
    check(refused[0] < ROUNDS && refused[1] < ROUNDS, "both made files");
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("room", 0755) == 0 && mount("none", "room", "tmpfs", 0, "nr_inodes=4,mode=755") == 0);
    need(mkdir("room/one", 0777) == 0 && mkdir("room/two", 0777) == 0);
    need(chmod("room/one", 0777) == 0 && chmod("room/two", 0777) == 0);
    need(as_nobody(attempt, NULL) == 0);
    section("afterwards one more fits, and only one");
    RESULT(mknod("room/one/file", S_IFREG | 0600, 0));
    RESULT(mknod("room/two/file", S_IFREG | 0600, 0));
    RESULT(link("room/one/file", "room/two/name"));
    need(umount("room") == 0);
    return 0;
}
