/*
 * process_vm_readv(2): copies from and to another process's memory, stops at unmapped pages, and needs an existing
 * process.
 */
#include "../contract.h"

static char *area;

static int child(void *ends)
{
    char byte;
    strcpy(area, "child text");
    need(write(((int *)ends)[3], "x", 1) == 1 && read(((int *)ends)[0], &byte, 1) == 1);
    return strcmp(area, "new words!") ? 1 : 0;
}

int main(void)
{
    int ends[4];
    char byte, text[32] = { 0 };
    need(pipe(ends) == 0 && pipe(ends + 2) == 0);
    area = fresh_pages(2);
    strcpy(area, "parent text");
    need(munmap(area + PAGE, PAGE) == 0);
    pid_t pid = spawn(child, ends);
    need(read(ends[2], &byte, 1) == 1);
    struct iovec here = { text, 10 }, there = { area, 10 };
    RESULT(process_vm_readv(pid, &here, 1, &there, 1, 0));
    show_text("read", text);
    struct iovec words = { "new words!", 10 };
    RESULT(process_vm_writev(pid, &words, 1, &there, 1, 0));
    show_text("own memory", area);
    struct iovec far = { area + PAGE, 10 };
    RESULT(process_vm_readv(pid, &here, 1, &far, 1, 0));
    struct iovec half[2] = { { area + 5, 3 }, { area + PAGE, 3 } };
    RESULT(process_vm_readv(pid, &here, 1, half, 2, 0));
    RESULT(process_vm_readv(9999999, &here, 1, &there, 1, 0));
    RESULT(process_vm_readv(pid, &here, 1, &there, 1, 1));
    need(write(ends[1], "x", 1) == 1);
    show_status("child", reap(pid));
    return 0;
}
