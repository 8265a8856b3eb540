/*
 * vdso(7), fork(2): a page of the vDSO that was made writable and written to is the process's own: a child has a copy,
 * and what either writes the other does not see. The kernel's data page beside it stays read-only.
 */
#include "../contract.h"
#include <sys/auxv.h>

/* It is changed whole: Linux does not split it. */
static size_t size_of_vdso(void)
{
    char line[256];
    unsigned long start = 0, end = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    need(maps);
    while (fgets(line, sizeof line, maps) && !strstr(line, "[vdso]"))
        ;
    need(strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &start, &end) == 2);
    fclose(maps);
    return end - start;
}

int main(void)
{
    unsigned char *page = (unsigned char *)getauxval(AT_SYSINFO_EHDR);
    int told[2], go[2];
    char byte;
    need(page && pipe(told) == 0 && pipe(go) == 0);
    OUTCOME(mprotect(page, size_of_vdso(), PROT_READ | PROT_WRITE | PROT_EXEC));
    /* The padding of e_ident. */
    page[10] = 1;
    show("written", page[10]);
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        show("the child's", page[10]);
        page[10] = 2;
        need(write(told[1], "x", 1) == 1 && read(go[0], &byte, 1) == 1);
        show("the child's at the end", page[10]);
        return 0;
    }
    need(read(told[0], &byte, 1) == 1);
    show("the parent's after the child wrote", page[10]);
    page[10] = 3;
    need(write(go[1], "x", 1) == 1);
    show_status("child", reap(child));
    struct timespec now;
    check(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "the clock goes on");
    return 0;
}
