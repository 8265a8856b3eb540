/*
 * contract: timeout=60
 * fcntl(2), "File Sealing": once F_ADD_SEALS has returned, contents and length do not change, also by a fallocate
 * that had begun before.
 */
#include "security.h"

#define ROUNDS 60
#define BYTES (64 * PAGE)

static int fd;
static volatile int begun;
static char *text;

static void *writes(void *unused)
{
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    while (pwrite(fd, text, BYTES, 0) > 0)
        ;
    return unused;
}

static void *punches(void *unused)
{
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    while (fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, PAGE) == 0)
        ;
    return unused;
}

static void *grows(void *unused)
{
    off_t end = BYTES;
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    while (fallocate(fd, 0, end, 64 * PAGE) == 0 && end < 2048 * (off_t)PAGE)
        end += 64 * PAGE;
    return unused;
}

static int rounds(void *(*body)(void *), int seal)
{
    static char before[PAGE], after[PAGE];
    int changed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t one, other;
        struct stat then, now;
        fd = memfd_create("sealed", MFD_ALLOW_SEALING);
        need(fd != -1 && pwrite(fd, text, BYTES, 0) == BYTES);
        begun = 0;
        need(pthread_create(&one, NULL, body, NULL) == 0);
        need(pthread_create(&other, NULL, seal == F_SEAL_WRITE ? writes : body, NULL) == 0);
        while (begun < 2)
            sched_yield();
        for (int pause = 0; pause < round * 50; pause++)
            __asm__ volatile("pause");
        need(fcntl(fd, F_ADD_SEALS, seal) == 0);
        need(fstat(fd, &then) == 0 && pread(fd, before, PAGE, 0) == (ssize_t)PAGE);
        pthread_join(one, NULL);
        pthread_join(other, NULL);
        need(fstat(fd, &now) == 0 && pread(fd, after, PAGE, 0) == (ssize_t)PAGE);
        changed += then.st_size != now.st_size || memcmp(before, after, PAGE) != 0;
        close(fd);
    }
    return changed;
}

int main(void)
{
    text = fresh_pages(BYTES / PAGE);
    memset(text, 'x', BYTES);
    show("holes punched after F_SEAL_WRITE", rounds(punches, F_SEAL_WRITE));
    show("files grown after F_SEAL_GROW", rounds(grows, F_SEAL_GROW));
    return 0;
}
