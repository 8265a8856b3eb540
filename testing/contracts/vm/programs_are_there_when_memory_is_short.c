/*
 * execve(2), mmap(2): what a file of the system holds is there for programs, also while a user's memory leaves little
 * free; it is neither zeros nor a SIGBUS, which is for what lies behind the end of a file.
 */
#include "../security/security.h"
#include <setjmp.h>

#define PIECE (1UL << 20)

static sigjmp_buf back;

static void missed(int number) { siglongjmp(back, number); }

/* A value of /proc/meminfo in bytes. */
static unsigned long memory(const char *name)
{
    char text[2048];
    need(get_file("/proc/meminfo", text, sizeof text) > 0);
    char *at = strstr(text, name);
    need(at);
    return strtoul(at + strlen(name), NULL, 10) << 10;
}

static int touched(volatile char *at)
{
    if (sigsetjmp(back, 1))
        return 0;
    (void)*at;
    return 1;
}

/* Pages of a file that cannot be read through a mapping. */
static int missing(const char *path)
{
    struct stat meta;
    int fd = open(path, O_RDONLY), count = 0;
    need(fd != -1 && fstat(fd, &meta) == 0);
    char *bytes = mmap(NULL, meta.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    need(bytes != MAP_FAILED);
    for (off_t at = 0; at < meta.st_size; at += PAGE)
        count += !touched(bytes + at);
    close(fd);
    return count;
}

static int attempt(void *unused)
{
    unsigned long little = memory("MemTotal:") / 20;
    catch_signal(SIGBUS, missed, SA_NODEFER);
    while (memory("MemFree:") > little) {
        char *piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        need(piece != MAP_FAILED);
        memset(piece, 1, PIECE);
    }
    show("pages of BusyBox that are missing", missing("/bin/busybox"));
    show("pages of the loader that are missing", missing("/lib/ld-musl-x86_64.so.1"));
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        execl("/lib/ld-musl-x86_64.so.1", "ld-musl", NULL);
        _exit(98);
    }
    show_status("the loader by itself", reap(child));
    return unused != NULL;
}

int main(void)
{
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
