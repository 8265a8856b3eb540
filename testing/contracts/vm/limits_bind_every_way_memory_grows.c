/*
 * setrlimit(2), mmap(2), mremap(2), mlockall(2): RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK and RLIMIT_MEMLOCK bind every
 * operation that enlarges a program's memory: mmap, brk, mprotect, mremap in place, moving and with MREMAP_DONTUNMAP,
 * growth of a MAP_GROWSDOWN range, execution. What a fixed mapping replaces makes room for it.
 */
#include "contract.h"
#include <sys/resource.h>
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum { KIB = 1024, RESERVED = 4 << 20 };

static void limit(int which, rlim_t bytes)
{
    struct rlimit both = { bytes, bytes };
    need(setrlimit(which, &both) == 0);
}

/* Bytes that a line of /proc/self/status tells in kB. */
static rlim_t told(const char *name)
{
    char text[4096], *at;
    need(get_file("/proc/self/status", text, sizeof text) > 0 && (at = strstr(text, name)));
    return strtoul(at + strlen(name), NULL, 10) * KIB;
}

static char *pages(size_t bytes, int rights)
{
    return mmap(NULL, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The first byte of a page that grows down, with room below it. */
static char *growing(void)
{
    char *area = pages(RESERVED, PROT_NONE);
    need(area != MAP_FAILED && munmap(area, RESERVED) == 0);
    area += RESERVED - PAGE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED;
    need(mmap(area, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == area);
    return area;
}

static void grow(char *from, size_t bytes)
{
    for (size_t below = PAGE; below <= bytes; below += PAGE)
        *(volatile char *)(from - below) = 1;
}

static int growth_in_space(void *bytes)
{
    char *area = growing();
    limit(RLIMIT_AS, told("VmSize:") + 64 * KIB);
    grow(area, *(size_t *)bytes);
    return 0;
}

static int growth_of_stack(void *bytes)
{
    char *area = growing();
    limit(RLIMIT_STACK, 128 * KIB);
    grow(area, *(size_t *)bytes);
    return 0;
}

static int space(void *unused)
{
    (void)unused;
    char *area = pages(256 * KIB, PROT_READ | PROT_WRITE), *place = pages(256 * KIB, PROT_READ);
    need(area != MAP_FAILED && place != MAP_FAILED);
    limit(RLIMIT_AS, told("VmSize:") + 64 * KIB);
    OUTCOME(mremap(area, 256 * KIB, 256 * KIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
    OUTCOME(mremap(area, 32 * KIB, 32 * KIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
    OUTCOME(mremap(area, 256 * KIB, 512 * KIB, MREMAP_MAYMOVE));
    section("what is replaced makes room");
    OUTCOME(mmap(place, 256 * KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    OUTCOME(mmap(NULL, 256 * KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mremap(area + 128 * KIB, 128 * KIB, 256 * KIB, MREMAP_MAYMOVE | MREMAP_FIXED, place));
    OUTCOME(mremap(area, 64 * KIB, 64 * KIB, MREMAP_MAYMOVE | MREMAP_FIXED, place));
    return 0;
}

static int data(void *unused)
{
    (void)unused;
    char *area = pages(64 * KIB, PROT_READ | PROT_WRITE), *read_only = pages(64 * KIB, PROT_READ);
    char *shared = mmap(NULL, 64 * KIB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(area != MAP_FAILED && read_only != MAP_FAILED && shared != MAP_FAILED);
    char *old_break = (char *)syscall(SYS_brk, 0);
    limit(RLIMIT_DATA, 0);
    OUTCOME(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0));
    show("the break stays", syscall(SYS_brk, old_break + PAGE) == (long)old_break);
    OUTCOME(mprotect(read_only, 16 * KIB, PROT_READ | PROT_WRITE));
    OUTCOME(mprotect(shared, 16 * KIB, PROT_READ | PROT_WRITE));
    OUTCOME(mprotect(area, 16 * KIB, PROT_READ | PROT_WRITE | PROT_EXEC));
    OUTCOME(mremap(area, 64 * KIB, 128 * KIB, MREMAP_MAYMOVE));
    OUTCOME(mremap(area, 64 * KIB, 64 * KIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
    OUTCOME(mremap(read_only, 64 * KIB, 128 * KIB, MREMAP_MAYMOVE));
    return 0;
}

static int locked_growth(void *bytes)
{
    limit(RLIMIT_MEMLOCK, 64 * KIB);
    need(setresuid(65534, 65534, 65534) == 0);
    need(mlockall(MCL_FUTURE) == 0);
    char *area = growing();
    grow(area, *(size_t *)bytes);
    return 0;
}

static int locked(void *unused)
{
    (void)unused;
    limit(RLIMIT_MEMLOCK, 64 * KIB);
    need(setresuid(65534, 65534, 65534) == 0);
    char *area = pages(256 * KIB, PROT_READ | PROT_WRITE), *old_break = (char *)syscall(SYS_brk, 0);
    need(area != MAP_FAILED);
    OUTCOME(mlock(area, 48 * KIB));
    OUTCOME(mlock(area + 48 * KIB, 32 * KIB));
    OUTCOME(mlock(area, 64 * KIB));
    show("locked KiB", told("VmLck:") / KIB);
    OUTCOME(mremap(area, 64 * KIB, 128 * KIB, MREMAP_MAYMOVE));
    section("a lock moves with its pages");
    char *moved = mremap(area, 64 * KIB, 64 * KIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    check(moved != MAP_FAILED, "moved");
    show("locked KiB", told("VmLck:") / KIB);
    OUTCOME(munlock(moved, 64 * KIB));
    show("locked KiB", told("VmLck:") / KIB);
    section("future mappings");
    RESULT(mlockall(MCL_FUTURE));
    RESULT(mlockall(MCL_CURRENT));
    OUTCOME(mmap(NULL, 128 * KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, 32 * KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    show("the break stays", syscall(SYS_brk, old_break + 64 * KIB) == (long)old_break);
    return 0;
}

static int execution(void *unused)
{
    (void)unused;
    limit(RLIMIT_AS, 64 * KIB);
    execl("/proc/self/exe", "self", "ran", NULL);
    return 3;
}

int main(int count, char **words)
{
    size_t some = 32 * KIB, more = 512 * KIB;
    if (count > 1)
        return words[1][0] == 'r' ? 42 : 0;
    section("growth within and beyond RLIMIT_AS");
    show_status("32 KiB", in_child(growth_in_space, &some));
    show_status("512 KiB", in_child(growth_in_space, &more));
    section("growth within and beyond RLIMIT_STACK");
    show_status("32 KiB", in_child(growth_of_stack, &some));
    show_status("512 KiB", in_child(growth_of_stack, &more));
    section("RLIMIT_AS");
    show_status("space", in_child(space, NULL));
    section("RLIMIT_DATA");
    show_status("data", in_child(data, NULL));
    section("growth within and beyond RLIMIT_MEMLOCK");
    show_status("32 KiB", in_child(locked_growth, &some));
    show_status("512 KiB", in_child(locked_growth, &more));
    section("RLIMIT_MEMLOCK");
    show_status("locked", in_child(locked, NULL));
    section("execution");
    int status = in_child(execution, NULL);
    show("the program ran", WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return 0;
}
