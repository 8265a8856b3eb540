/*
 * mprotect(2), madvise(2), mmap(2): a shared mapping of a file opened for reading never becomes writable, and neither
 * MADV_REMOVE nor MADV_POPULATE_WRITE does to it what a write would; a file on a noexec mount is not mapped for
 * execution.
 */
#include "security.h"
#include <sys/mount.h>

#define RW (PROT_READ | PROT_WRITE)

static int attempt(void *unused)
{
    (void)unused;
    int fd = open("file", O_RDONLY);
    need(fd != -1);
    OUTCOME(mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0));
    char *memory = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    need(memory != MAP_FAILED);
    OUTCOME(mprotect(memory, PAGE, RW));
    OUTCOME(mprotect(memory, PAGE, PROT_WRITE));
    OUTCOME(mprotect(memory, PAGE, PROT_READ));
    OUTCOME(madvise(memory, PAGE, 23 /* MADV_POPULATE_WRITE */));
    OUTCOME(madvise(memory, PAGE, MADV_REMOVE));
    char *moved = mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE);
    need(moved != MAP_FAILED);
    OUTCOME(mprotect(moved, PAGE, RW));
    OUTCOME(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
    OUTCOME(ftruncate(fd, 0));
    need(dup2(fd, 50) == 50);
    OUTCOME(open("/proc/self/fd/50", O_RDWR));
    OUTCOME(open("/dev/fd/50", O_WRONLY | O_TRUNC));
    char text[5] = "";
    need(pread(fd, text, 4, 0) == 4);
    show_text("contents", text);
    int writable = open("open", O_WRONLY);
    need(writable != -1);
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, writable, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, writable, 0));
    section("noexec");
    int plain = open("noexec/file", O_RDONLY);
    need(plain != -1);
    OUTCOME(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, plain, 0));
    memory = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, plain, 0);
    need(memory != MAP_FAILED);
    OUTCOME(mprotect(memory, PAGE, PROT_READ | PROT_EXEC));
    OUTCOME(execl("noexec/file", "file", NULL));
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "text", 0644);
    put_file("open", "text", 0666);
    need(mkdir("noexec", 0755) == 0 && mount("none", "noexec", "tmpfs", MS_NOEXEC, "mode=755") == 0);
    put_file("noexec/file", "#!/bin/true\n", 0755);

    show_status("attempt", as_nobody(attempt, NULL));
    need(umount("noexec") == 0);
    return 0;
}
