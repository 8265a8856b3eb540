/*
 * Files of root: what they hold, read and mapped, and what is said about them, must stay.
 */
#include "supervise.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const paths[] = {
    "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/kwab/secret", "/bin/busybox", "/bin/fuzz", "/bin/fuzz-root",
    "/etc",
    "/bin", "/root", "/etc/kwab", "/",
};
enum { FILES = sizeof paths / sizeof paths[0] };

struct print { uint64_t read, mapped; struct stat about; };
static struct print before[FILES];

static uint64_t digest(uint64_t sum, const uint8_t *bytes, size_t length)
{
    uint64_t word;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        sum = (sum ^ word) * 0x100000001b3ULL;
    }
    for (; length; bytes++, length--)
        sum = (sum ^ *bytes) * 0x100000001b3ULL;
    return sum;
}

static void take(const char *path, struct print *print)
{
    static uint8_t block[16 * PAGE];
    memset(print, 0, sizeof *print);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1 || fstat(fd, &print->about) == -1)
        return;
    /* Reading changes the first, and chown(path, -1, -1), which needs no right, the second. */
    memset(&print->about.st_atim, 0, sizeof print->about.st_atim);
    memset(&print->about.st_ctim, 0, sizeof print->about.st_ctim);
    if (S_ISREG(print->about.st_mode)) {
        for (ssize_t got; (got = read(fd, block, sizeof block)) > 0;)
            print->read = digest(print->read, block, (size_t)got);
        size_t length = (size_t)print->about.st_size;
        uint8_t *at = length ? mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        if (at != MAP_FAILED) {
            print->mapped = digest(0, at, length);
            munmap(at, length);
        }
    }
    close(fd);
}

void take_fingerprints(void)
{
    int fd = open("/etc/kwab/secret", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd == -1 || write(fd, secret, sizeof secret) != sizeof secret)
        perror("fuzz: /etc/kwab/secret");
    close(fd);
    for (int i = 0; i < FILES; i++)
        take(paths[i], &before[i]);
}

static void describe_change(const char *path, const struct stat *was, const struct stat *is)
{
    finding("file", "%s: mode %o to %o, user %d to %d, group %d to %d, links %d to %d, size %ld to %ld, "
            "time %ld to %ld",
            path, was->st_mode, is->st_mode, was->st_uid, is->st_uid, was->st_gid, is->st_gid, (int)was->st_nlink,
            (int)is->st_nlink, (long)was->st_size, (long)is->st_size, (long)was->st_mtime, (long)is->st_mtime);
}

void compare_fingerprints(void)
{
    for (int i = 0; i < FILES; i++) {
        struct print now;
        take(paths[i], &now);
        if (now.read != before[i].read || now.mapped != before[i].mapped)
            finding("file", "%s has other content", paths[i]);
        else if (memcmp(&now.about, &before[i].about, sizeof now.about) != 0)
            describe_change(paths[i], &before[i].about, &now.about);
        before[i] = now;
    }
}

/* What fuzz-root does: root's, with memory that its caller must not change. */
int set_id_program(void)
{
    enum { WORDS = 8192 };
    static volatile uint32_t words[WORDS];
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < WORDS; i++)
            words[i] = i * 31 + (uint32_t)round;
        usleep(200);
        for (uint32_t i = 0; i < WORDS; i++)
            if (words[i] != i * 31 + (uint32_t)round) {
                static const char line[] = "\nFUZZ-FINDING set-id running -: memory of a set-id program changed\n";
                int console = open("/dev/console", O_WRONLY);
                return write(console, line, sizeof line - 1) > 0 ? 33 : 34;
            }
    }
    return 33;
}
