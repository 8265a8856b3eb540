/* mmap(2), mm/mmap.c: a mapping of a file, or of shared memory, cannot be one that grows down: EINVAL. */
#include "../contract.h"

static void try(const char *what, int flags, int fd)
{
    void *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, flags | MAP_GROWSDOWN, fd, 0);
    say("%s: %s", what, at == MAP_FAILED ? errno_name(errno) : "ok");
    if (at != MAP_FAILED)
        munmap(at, 4 * PAGE);
}

int main(void)
{
    scratch();
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600), zero = open("/dev/zero", O_RDWR);
    int reader = open("file", O_RDONLY), directory = open(".", O_RDONLY);
    need(fd != -1 && zero != -1 && reader != -1 && ftruncate(fd, 8 * PAGE) == 0);
    try("private memory", MAP_PRIVATE | MAP_ANONYMOUS, -1);
    try("shared memory", MAP_SHARED | MAP_ANONYMOUS, -1);
    try("a private file", MAP_PRIVATE, fd);
    try("a shared file", MAP_SHARED, fd);
    try("a shared file, checked", MAP_SHARED_VALIDATE, fd);
    try("private zeros", MAP_PRIVATE, zero);
    try("shared zeros", MAP_SHARED, zero);
    try("a file that cannot be written, private", MAP_PRIVATE, reader);
    try("a file that cannot be written, shared", MAP_SHARED, reader);
    try("a directory", MAP_PRIVATE, directory);
    return 0;
}
