/*
 * madvise(2), prctl(2), Documentation/admin-guide/mm/transhuge.rst: MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLLAPSE,
 * PR_SET_THP_DISABLE and the settings in /sys decide whether a range has 2 MiB pages; smaps shows them.
 */
#include "../contract.h"
#include <sys/prctl.h>

#define HUGE (2UL << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define ENABLED "/sys/kernel/mm/transparent_hugepage/enabled"
#define DEFRAG "/sys/kernel/mm/transparent_hugepage/defrag"

static char *fresh_block(int advice)
{
    char *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(room != MAP_FAILED);
    char *block = (char *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));
    if (block > room)
        need(munmap(room, block - room) == 0);
    if (block < room + HUGE)
        need(munmap(block + HUGE, room + HUGE - block) == 0);
    if (advice >= 0)
        need(madvise(block, HUGE, advice) == 0);
    return block;
}

/* AnonHugePages of the ranges that begin in the block, in kB. */
static long huge_in(const char *block)
{
    char line[256];
    unsigned long start, end;
    long sum = 0, value;
    int inside = 0;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    need(smaps != NULL);
    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2 && strchr(line, '-') < strchr(line, ' '))
            inside = start >= (unsigned long)block && start < (unsigned long)block + HUGE;
        else if (inside && sscanf(line, "AnonHugePages: %ld kB", &value) == 1)
            sum += value;
    }
    fclose(smaps);
    return sum;
}

static void touch(char *block)
{
    for (size_t at = 0; at < HUGE; at += PAGE)
        block[at] = (char)(at / PAGE);
}

static int wrong(const char *block)
{
    int count = 0;
    for (size_t at = 0; at < HUGE; at += PAGE)
        count += block[at] != (char)(at / PAGE);
    return count;
}

static void write_setting(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    need(fd != -1);
    OUTCOME(write(fd, text, strlen(text)));
    close(fd);
}

static void show_setting(const char *path)
{
    char text[128];
    get_file(path, text, sizeof text);
    show_text("setting", text);
}

static void advised(void)
{
    section("advised");
    char *block = fresh_block(MADV_HUGEPAGE);
    block[5] = 1;
    show("one touch", huge_in(block));
    block[0] = 0;
    touch(block);
    RESULT(madvise(block + PAGE, PAGE, MADV_NOHUGEPAGE));
    show("split by advice", huge_in(block));
    show("wrong", wrong(block));
    munmap(block, HUGE);
    block = fresh_block(MADV_NOHUGEPAGE);
    touch(block);
    show("declined", huge_in(block));
    RESULT(madvise(block, HUGE, MADV_COLLAPSE));
    RESULT(madvise(block, HUGE, MADV_HUGEPAGE));
    RESULT(madvise(block, HUGE, MADV_COLLAPSE));
    show("collapsed", huge_in(block));
    show("wrong", wrong(block));
    RESULT(madvise(block, HUGE, MADV_COLLAPSE));
    RESULT(mprotect(block + HUGE / 2, PAGE, PROT_READ));
    show("split by a protection", huge_in(block));
    RESULT(mprotect(block + HUGE / 2, PAGE, PROT_READ | PROT_WRITE));
    RESULT(madvise(block + 100 * PAGE, 50 * PAGE, MADV_DONTNEED));
    RESULT(madvise(block, HUGE, MADV_COLLAPSE));
    show("collapsed with a hole", huge_in(block));
    check(block[100 * PAGE] == 0 && block[149 * PAGE] == 0 && block[150 * PAGE] == (char)150, "the hole is zeros");
    munmap(block, HUGE);
    section("not a whole block");
    block = fresh_block(MADV_HUGEPAGE);
    touch(block);
    RESULT(munmap(block + HUGE - PAGE, PAGE));
    show("split by unmapping", huge_in(block));
    munmap(block, HUGE);
}

static int disabled(void *unused)
{
    (void)unused;
    RESULT(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    RESULT(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    RESULT(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    char *block = fresh_block(MADV_HUGEPAGE);
    touch(block);
    show("disabled", huge_in(block));
    pid_t child = fork();
    if (child == 0)
        _exit(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    show_status("inherited", reap(child));
    return 0;
}

static int may_not(void *unused)
{
    (void)unused;
    need(setuid(65534) == 0);
    return open(ENABLED, O_WRONLY) == -1 ? errno == EACCES ? 0 : 1 : 2;
}

int main(void)
{
    section("settings");
    write_setting(ENABLED, "madvise");
    show_setting(ENABLED);
    write_setting(ENABLED, "sometimes");
    write_setting(DEFRAG, "defer+madvise\n");
    show_setting(DEFRAG);
    write_setting(DEFRAG, "madvise");
    char *block = fresh_block(-1);
    touch(block);
    show("not asked for", huge_in(block));
    munmap(block, HUGE);
    show_status("another user", in_child(may_not, NULL));
    advised();
    show_status("disabled", in_child(disabled, NULL));
    section("never");
    write_setting(ENABLED, "never");
    block = fresh_block(MADV_HUGEPAGE);
    touch(block);
    show("never", huge_in(block));
    munmap(block, HUGE);
    write_setting(ENABLED, "always");
    show_setting(ENABLED);
    block = fresh_block(-1);
    touch(block);
    show("always", huge_in(block));
    munmap(block, HUGE);
    return 0;
}
