/*
 * execve(2), mmap(2): 4 MiB of code, which a kernel can show by two leaves of 2 MiB to all who run it, stay the
 * file's. A page that a process makes writable, also one that is written from outside (process_vm_writev(2)), is its
 * own; what is unmapped, moved, thrown away or inherited leaves the others as they are.
 */
#include "security.h"
#include <sys/wait.h>

#define HUGE (2UL << 20)
#define PAGES 1024

/* A page has its number in front, and returns from everywhere else. */
__asm__(".section .text.large,\"ax\",@progbits\n"
        ".p2align 21\n"
        ".globl large\n"
        "large:\n"
        ".set at, 0\n"
        ".rept 1024\n"
        ".quad at\n"
        ".fill 511, 8, 0xc3c3c3c3c3c3c3c3\n"
        ".set at, at + 1\n"
        ".endr\n"
        ".text\n");
extern char large[];

static volatile int stop;

/* The first page that does not have its number, or PAGES. */
static int first_wrong(const char *memory, int from, int to)
{
    for (int at = from; at < to; at++)
        if (*(const volatile long *)(memory + at * (long)PAGE) != at)
            return at;
    return PAGES;
}

static void whole(const char *when)
{
    char text[96];
    snprintf(text, sizeof text, "%s: pages are the file's", when);
    show(text, first_wrong(large, 0, PAGES) == PAGES);
}

/* Whether the program's file still has all its pages where it had them. */
static void file_is_whole(const char *when)
{
    static char page[PAGE];
    int fd = open("/proc/self/exe", O_RDONLY), right = 0;
    off_t offset = -1;
    for (off_t at = 0; offset == -1 && pread(fd, page, PAGE, at) == PAGE; at += PAGE)
        if (*(long *)page == 0 && memcmp(page + 8, large + 8, PAGE - 8) == 0)
            offset = at;
    need(offset != -1);
    for (int at = 0; at < PAGES; at++)
        right += pread(fd, page, PAGE, offset + at * (off_t)PAGE) == PAGE && *(long *)page == at;
    close(fd);
    char text[96];
    snprintf(text, sizeof text, "%s: right pages of the file", when);
    show(text, right);
}

static int write_after_mprotect(void *unused)
{
    (void)unused;
    RESULT(mprotect(large + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
    *(volatile long *)(large + 5 * PAGE) = -1;
    show("first wrong page of who writes", first_wrong(large, 0, PAGES));
    show("from there on", first_wrong(large, 6, PAGES));
    RESULT(mprotect(large, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
    for (int at = 700; at < PAGES; at += 64)
        *(volatile long *)(large + at * PAGE) = -1;
    show("in the second half", first_wrong(large, 512, PAGES));
    return 0;
}

static int write_from_outside(void *unused)
{
    (void)unused;
    long value = -1;
    struct iovec from = { &value, sizeof value }, to = { large + 9 * PAGE, sizeof value };
    RESULT(process_vm_writev(getpid(), &from, 1, &to, 1, 0));
    show("first wrong page", first_wrong(large, 0, PAGES));
    RESULT(mprotect(large + 9 * PAGE, PAGE, PROT_READ | PROT_WRITE));
    RESULT(process_vm_writev(getpid(), &from, 1, &to, 1, 0));
    show("first wrong page", first_wrong(large, 0, PAGES));
    RESULT(madvise(large + 9 * PAGE, PAGE, MADV_DONTNEED));
    show("thrown away", first_wrong(large, 0, PAGES));
    return 0;
}

static int take_apart(void *unused)
{
    (void)unused;
    RESULT(munmap(large + 100 * PAGE, 3 * PAGE));
    show("below and above", first_wrong(large, 0, 100) + first_wrong(large, 103, PAGES) == 2 * PAGES);
    char *moved = mremap(large + HUGE, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x700000000000);
    show("moved", moved == (char *)0x700000000000);
    show("its pages", first_wrong(moved - HUGE, 512, PAGES) == PAGES);
    RESULT(mprotect(moved, HUGE, PROT_READ | PROT_WRITE));
    memset(moved, 'X', HUGE);
    RESULT(madvise(moved, HUGE, MADV_DONTNEED));
    show("thrown away", first_wrong(moved - HUGE, 512, PAGES) == PAGES);
    return 0;
}

static void *write_in_turns(void *unused)
{
    long value = -1;
    while (!stop)
        for (int at = 0; at < PAGES; at += 37) {
            struct iovec from = { &value, sizeof value }, to = { large + at * PAGE, sizeof value };
            process_vm_writev(getpid(), &from, 1, &to, 1, 0);
        }
    return unused;
}

static void *throw_away(void *unused)
{
    struct timespec moment = { 0, 20000 };
    while (!stop) {
        nanosleep(&moment, NULL);
        need(madvise(large, PAGES * PAGE, MADV_DONTNEED) == 0);
        (void)first_wrong(large, 0, PAGES);
    }
    return unused;
}

static int race(void *unused)
{
    (void)unused;
    pthread_t threads[4];
    need(mprotect(large, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        need(pthread_create(&threads[at], NULL, at < 2 ? write_in_turns : throw_away, NULL) == 0);
    for (int round = 0; round < 20; round++) {
        sleep_ms(50);
        pid_t child = fork();
        if (child == 0) {
            *(volatile long *)(large + round * PAGE) = -2;
            _exit(0);
        }
        need(reap(child) == 0);
    }
    stop = 1;
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        pthread_join(threads[at], NULL);
    return 0;
}

int main(int count, char **words)
{
    static const struct { const char *name; int (*body)(void *); } attempts[] = {
        { "write after mprotect", write_after_mprotect },
        { "write from outside", write_from_outside },
        { "take apart", take_apart },
        { "race", race },
    };
    whole(count > 1 ? words[1] : "first");
    for (size_t at = 0; at < COUNT_OF(attempts); at++) {
        section(attempts[at].name);
        show_status(attempts[at].name, as_nobody(attempts[at].body, NULL));
        whole(attempts[at].name);
        file_is_whole(attempts[at].name);
    }
    if (count == 1) {
        section("executed again");
        execl("/proc/self/exe", "self", "again", NULL);
        need(0);
    }
    return 0;
}
