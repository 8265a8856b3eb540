/*
 * vdso(7), mprotect(2): the page in which the kernel tells programs the time can be read, moved and given up, and no
 * more: it becomes neither writable nor executable, for the program itself or for another.
 */
#include "security.h"

static char *vvar(size_t *length)
{
    char line[256];
    unsigned long start = 0, end = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    need(maps != NULL);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "[vvar]"))
            need(sscanf(line, "%lx-%lx", &start, &end) == 2);
    fclose(maps);
    need(start != 0);
    *length = end - start;
    return (char *)start;
}

static int attempt(void *unused)
{
    (void)unused;
    size_t length;
    char *page = vvar(&length), word[8] = "written";
    RESULT(mprotect(page, length, PROT_READ | PROT_WRITE));
    RESULT(mprotect(page, length, PROT_WRITE));
    RESULT(mprotect(page, length, PROT_READ | PROT_EXEC));
    RESULT(mprotect(page, length, PROT_READ));
    struct iovec from = { word, sizeof word }, to = { page, sizeof word };
    RESULT(process_vm_writev(getpid(), &from, 1, &to, 1, 0));
    int pipes[2];
    need(pipe(pipes) == 0 && write(pipes[1], word, 8) == 8);
    RESULT(read(pipes[0], page, 8));
    void *moved = mremap(page, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x100000000UL);
    check(moved == (void *)0x100000000UL, "it moves");
    RESULT(mprotect(moved, length, PROT_READ | PROT_WRITE));
    RESULT(munmap(moved, length));
    return 0;
}

int main(void)
{
    scratch();
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
