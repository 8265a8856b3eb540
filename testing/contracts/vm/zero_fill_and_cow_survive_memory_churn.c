/*
 * mmap(2), fork(2): memory given back and taken again is always zero, and pages shared by fork keep their bytes
 * under churn.
 */
#include "../contract.h"

static char *keep;

static int churns(void *unused)
{
    (void)unused;
    for (int round = 0; round < 30; round++) {
        char *memory = fresh_pages(64);
        for (size_t i = 0; i < 64 * PAGE; i += 64)
            if (memory[i])
                return 1;
        memset(memory, 0xff, 64 * PAGE);
        if (munmap(memory, 64 * PAGE))
            return 2;
    }
    for (size_t i = 0; i < 128; i++)
        if (keep[i * PAGE] != (char)i || keep[i * PAGE + 4095] != (char)~i)
            return 3;
    for (size_t i = 0; i < 128; i += 3)
        memset(keep + i * PAGE, 0x77, PAGE);
    return 0;
}

int main(void)
{
    keep = fresh_pages(128);
    for (size_t i = 0; i < 128; i++) {
        keep[i * PAGE] = (char)i;
        keep[i * PAGE + 4095] = (char)~i;
    }
    pid_t children[3];
    for (int i = 0; i < 3; i++)
        children[i] = spawn(churns, NULL);
    for (int i = 0; i < 3; i++)
        show_status("child", reap(children[i]));
    int wrong = 0;
    for (size_t i = 0; i < 128; i++)
        wrong += keep[i * PAGE] != (char)i || keep[i * PAGE + 4095] != (char)~i;
    show("wrong pages", wrong);
    return 0;
}
