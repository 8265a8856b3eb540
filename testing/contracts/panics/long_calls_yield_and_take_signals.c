/*
 * read(2), sendfile(2), random(4), process_vm_readv(2): a call that moves gigabytes lets others run meanwhile and ends
 * early for a signal, with what it has moved; a fatal one ends any call soon. Calls over huge empty ranges are quick.
 * contract: timeout=60
 */
#include "../contract.h"
#include <sys/random.h>
#include <sys/sendfile.h>

#define MOST 0x7ffff000L

static volatile int rang;
/* Ticks of a child that shares nothing with the calls, while they run on every processor. */
static volatile int *ticks;

static void ring(int number)
{
    (void)number;
    rang = 1;
}

static void alarm_in_ms(int milliseconds)
{
    struct itimerval soon = { .it_value = { 0, milliseconds * 1000 } };
    rang = 0;
    need(setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

/* Long vectors over one small buffer: the call moves as much as it may, in little memory. */
static struct iovec many[1024];
static char *buffer;
#define PART (2L << 20)

static void vectors(void)
{
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = (struct iovec){ buffer, PART };
}

static void report(const char *call, ssize_t got)
{
    say("%s: %s, signal %d", call,
        got == -1 ? errno_name(errno) : got == 0 ? "nothing" : got < MOST ? "in part" : "whole", rang);
}

static void reads(const char *path)
{
    int fd = open(path, O_RDONLY);
    need(fd != -1);
    alarm_in_ms(30);
    report(path, readv(fd, many, 1024));
    close(fd);
}

static int sends(void *unused)
{
    (void)unused;
    int from = open("/dev/urandom", O_RDONLY), to = open("/dev/null", O_WRONLY);
    alarm_in_ms(30);
    report("sendfile", sendfile(to, from, NULL, MOST));
    char *large = fresh_pages(PAGE * 8);
    alarm_in_ms(30);
    report("getrandom", getrandom(large, PAGE * PAGE * 8, 0));
    return 0;
}

/* What a killed child was in the midst of. */
static int reads_a_file(void *unused)
{
    (void)unused;
    int fd = open("sparse", O_RDWR | O_CREAT, 0600);
    need(fd != -1 && ftruncate(fd, 1L << 40) == 0);
    while (ticks)
        preadv(fd, many, 1024, 0);
    return 0;
}

static int reads_memory(void *unused)
{
    (void)unused;
    while (ticks)
        process_vm_readv(getpid(), many, 1024, many, 1024, 0);
    return 0;
}

static int asks_for_pages(void *unused)
{
    (void)unused;
    char *range = mmap(NULL, 1L << 40, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(range != MAP_FAILED);
    /* Few vectors of the answer fit: a megabyte is told of 4 GiB. */
    while (ticks)
        for (long at = 0; at < 1L << 40; at += 4L << 30)
            mincore(range + at, 4L << 30, (unsigned char *)buffer);
    return 0;
}

static void killed(const char *name, int (*body)(void *))
{
    pid_t child = spawn(body, NULL);
    sleep_ms(150);
    need(kill(child, SIGKILL) == 0);
    show_status(name, reap(child));
}

static int punches(void *unused)
{
    (void)unused;
    int fd = open("hole", O_RDWR | O_CREAT, 0600);
    need(fd != -1 && ftruncate(fd, 1L << 60) == 0 && pwrite(fd, "x", 1, 1L << 59) == 1);
    RESULT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1L << 60));
    struct stat meta;
    need(fstat(fd, &meta) == 0);
    show("blocks", meta.st_blocks);
    return 0;
}

static int ranges(void *unused)
{
    (void)unused;
    size_t huge = 32L << 40;
    char *range = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(range != MAP_FAILED);
    range[0] = range[huge / 2] = range[huge - 1] = 1;
    RESULT(madvise(range, huge, MADV_DONTNEED));
    RESULT(mprotect(range, huge, PROT_READ));
    RESULT(mprotect(range, huge, PROT_NONE));
    RESULT(msync(range, huge, MS_SYNC));
    pid_t child = fork();
    if (child == 0)
        _exit(range == NULL);
    show_status("fork", reap(child));
    char *moved = mremap(range, huge, huge / 2, 0);
    check(moved == range, "mremap");
    RESULT(munmap(range, huge / 2));
    char *none = mmap(NULL, huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE, -1, 0);
    check(none != MAP_FAILED, "a range without access is populated");
    return 0;
}

static int ticks_on(void *unused)
{
    (void)unused;
    while (++*ticks)
        sleep_ms(1);
    return 0;
}

int main(void)
{
    scratch();
    buffer = fresh_pages(PART / PAGE);
    ticks = shared_page();
    vectors();
    catch_signal(SIGALRM, ring, 0);
    section("a signal in the midst");
    reads("/dev/urandom");
    reads("/dev/zero");
    show_status("sending", in_child(sends, NULL));
    section("others run meanwhile");
    pid_t others = spawn(ticks_on, NULL), busy[4];
    for (size_t i = 0; i < COUNT_OF(busy); i++)
        busy[i] = spawn(i % 2 ? reads_a_file : reads_memory, NULL);
    sleep_ms(100);
    int before = *ticks;
    for (int turn = 0; turn < 2000 && *ticks < before + 5; turn++)
        sleep_ms(2);
    show("it ticks", *ticks >= before + 5);
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        kill(busy[i], SIGKILL);
        reap(busy[i]);
    }
    kill(others, SIGKILL);
    reap(others);
    section("a fatal signal in the midst");
    killed("reading a file", reads_a_file);
    killed("reading memory", reads_memory);
    killed("asking for pages", asks_for_pages);
    section("huge and empty");
    show_status("child", in_child(punches, NULL));
    show_status("child", in_child(ranges, NULL));
    return 0;
}
