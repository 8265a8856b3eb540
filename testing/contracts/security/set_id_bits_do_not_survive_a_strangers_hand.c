/*
 * inode(7), chown(2), write(2), truncate(2), open(2): a write, truncation or change of owner by who has no CAP_FSETID
 * clears the set-id bits, and a file made in a set-group-ID directory of a foreign group is not set-group-ID and
 * executable.
 */
#include "security.h"
#include <sys/sendfile.h>

static void remake(void)
{
    put_file("file", "#!/bin/true\n", 0777);
    need(chmod("file", 06777) == 0);
}

static void mode_after(const char *what)
{
    struct stat meta;
    need(stat("file", &meta) == 0);
    say("%s: mode %o", what, meta.st_mode & 07777);
}

static int do_write(void *unused)
{
    int fd = open("file", O_WRONLY);
    need(write(fd, "x", 1) == 1);
    return unused != NULL;
}
static int do_nothing(void *unused)
{
    int fd = open("file", O_WRONLY);
    need(write(fd, "x", 0) == 0);
    return unused != NULL;
}
static int do_pwritev(void *unused)
{
    struct iovec bytes = { "x", 1 };
    int fd = open("file", O_WRONLY);
    need(pwritev(fd, &bytes, 1, 3) == 1);
    return unused != NULL;
}
static int do_truncate(void *unused) { need(truncate("file", 1) == 0); return unused != NULL; }
static int do_grow(void *unused) { need(truncate("file", 100) == 0); return unused != NULL; }
static int do_ftruncate(void *unused)
{
    int fd = open("file", O_WRONLY);
    need(ftruncate(fd, 1) == 0);
    return unused != NULL;
}
static int do_open(void *unused) { need(open("file", O_WRONLY | O_TRUNC) != -1); return unused != NULL; }
static int do_allocate(void *unused)
{
    int fd = open("file", O_WRONLY);
    need(fallocate(fd, 0, 0, 8192) == 0);
    return unused != NULL;
}
static int do_punch(void *unused)
{
    int fd = open("file", O_WRONLY);
    need(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4) == 0);
    return unused != NULL;
}
static int do_sendfile(void *unused)
{
    int fd = open("file", O_WRONLY), from = open("/etc/passwd", O_RDONLY);
    need(sendfile(fd, from, NULL, 4) == 4);
    return unused != NULL;
}
static int do_map(void *unused)
{
    int fd = open("file", O_RDWR);
    char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(memory != MAP_FAILED);
    *memory = '!';
    return unused != NULL;
}
static int do_chown(void *unused) { need(chown("file", -1, NOBODY) == 0); return unused != NULL; }
static int do_chmod(void *unused) { need(chmod("file", 06755) == 0); return unused != NULL; }

static int in_directory(void *unused)
{
    struct stat meta;
    close(open("setgid/file", O_WRONLY | O_CREAT, 02755));
    need(stat("setgid/file", &meta) == 0);
    say("open: mode %o, group %d", meta.st_mode & 07777, (int)meta.st_gid);
    close(open("setgid/plain", O_WRONLY | O_CREAT, 02644));
    need(stat("setgid/plain", &meta) == 0);
    say("open without execution: mode %o, group %d", meta.st_mode & 07777, (int)meta.st_gid);
    need(mknod("setgid/node", S_IFREG | 02755, 0) == 0 && stat("setgid/node", &meta) == 0);
    say("mknod: mode %o, group %d", meta.st_mode & 07777, (int)meta.st_gid);
    need(mkdir("setgid/dir", 0755) == 0 && stat("setgid/dir", &meta) == 0);
    say("mkdir: mode %o, group %d", meta.st_mode & 07777, (int)meta.st_gid);
    int fd = open("setgid", O_TMPFILE | O_WRONLY, 02755);
    need(fd != -1 && fstat(fd, &meta) == 0);
    say("O_TMPFILE: mode %o, group %d", meta.st_mode & 07777, (int)meta.st_gid);
    need(chmod("setgid/file", 02755) == 0 && stat("setgid/file", &meta) == 0);
    say("chmod: mode %o, group %d", meta.st_mode & 07777, (int)meta.st_gid);
    return unused != NULL;
}

int main(void)
{
    static const struct { const char *name; int (*body)(void *); } hands[] = {
        { "write", do_write }, { "write of nothing", do_nothing }, { "pwritev", do_pwritev },
        { "truncate", do_truncate }, { "truncate to more", do_grow }, { "ftruncate", do_ftruncate },
        { "O_TRUNC", do_open }, { "fallocate", do_allocate },
        { "a hole", do_punch }, { "sendfile", do_sendfile }, { "a shared mapping", do_map },
    };
    scratch();
    for (size_t at = 0; at < COUNT_OF(hands); at++) {
        remake();
        show_status(hands[at].name, as_nobody(hands[at].body, NULL));
        mode_after(hands[at].name);
    }
    section("by root");
    for (size_t at = 0; at < COUNT_OF(hands); at++) {
        remake();
        need(in_child(hands[at].body, NULL) == 0);
        mode_after(hands[at].name);
    }
    section("by the owner");
    remake();
    need(chown("file", NOBODY, 1000) == 0 && chmod("file", 06777) == 0);
    show_status("chown", as_nobody(do_chown, NULL));
    mode_after("chown");
    need(chown("file", NOBODY, 1000) == 0);
    show_status("chmod in a foreign group", as_nobody(do_chmod, NULL));
    mode_after("chmod");
    section("a set-group-ID directory");
    need(mkdir("setgid", 0755) == 0 && chown("setgid", 0, 1000) == 0 && chmod("setgid", 02777) == 0);
    show_status("attempt", as_nobody(in_directory, NULL));
    return 0;
}
