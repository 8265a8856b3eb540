/*
 * The init of a memory run: how much memory the kernel has left before, between and behind many objects of one kind.
 *
 * /etc/kwab/memory holds the name of one row. It makes the row's objects in STEPS steps, keeps them all, and prints the
 * kernel's own figures before the first step and behind each: "MEM <name> <objects> <MemFree> <MemAvailable>", KiB of
 * /proc/meminfo. Behind the last step all objects are given back, and "MEM-END <name> <MemFree> <MemAvailable>"
 * follows. The row "idle" makes nothing, and prints MemTotal in place of the objects. Between an object and a reading
 * passes more than a second of rest, in which per-processor counters are folded and deferred work is done. Threads'
 * stacks are chosen here, so that both kernels are asked for the same.
 */
#include "pid1.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define STEPS 4
#define MOST (STEPS * 50000)
#define THREADS 1000
#define PAGE 4096UL
#define THREAD_STACK 16384UL

__attribute__((noreturn)) static void fail(const char *what) {
    printf("MEM-FAILED %s: %s\n", what, strerror(errno));
    fflush(stdout);
    pid1_finish(1);
}

static long need(long value, const char *what) {
    if (value == -1) fail(what);
    return value;
}

static void *mapped(size_t bytes, int protection) {
    void *at = mmap(0, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    return at;
}

/* What was made; room for all of it is touched before the first reading. */
static long *made;

static void rest_forever(void) {
    for (;;) pause();
}

static void process_make(unsigned number) {
    pid_t child = fork();
    if (child == 0) rest_forever();
    made[number] = need(child, "fork");
}

static void program_make(unsigned number) {
    char *const arguments[] = {"/sbin/memory", "rest", 0};
    pid_t child = vfork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    made[number] = need(child, "vfork");
}

static void process_end(unsigned number) {
    int status = 0;
    need(kill((pid_t)made[number], SIGKILL), "kill");
    need(waitpid((pid_t)made[number], &status, 0), "waitpid");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) fail("a child ended by itself");
}

static pthread_mutex_t over = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int is_over;

static void *thread_rest(void *unused) {
    pthread_mutex_lock(&over);
    while (!is_over) pthread_cond_wait(&ended, &over);
    pthread_mutex_unlock(&over);
    return unused;
}

/* Room for all stacks, of which each thread touches a page. */
static char *stacks;

static char *room(size_t bytes) {
    char *at = mapped(bytes, PROT_READ | PROT_WRITE);
    need(madvise(at, bytes, MADV_NOHUGEPAGE), "madvise");
    return at;
}

static void thread_make(unsigned number) {
    if (!stacks) stacks = room(STEPS * THREADS * THREAD_STACK);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks + number * THREAD_STACK, THREAD_STACK);
    errno = pthread_create(&thread, &attributes, thread_rest, 0);
    if (errno) fail("pthread_create");
    made[number] = (long)thread;
}

static void thread_end(unsigned number) {
    if (!is_over) {
        pthread_mutex_lock(&over);
        is_over = 1;
        pthread_cond_broadcast(&ended);
        pthread_mutex_unlock(&over);
    }
    errno = pthread_join((pthread_t)made[number], 0);
    if (errno) fail("pthread_join");
    need(munmap(stacks + number * THREAD_STACK, THREAD_STACK), "munmap");
}

static void file_make(unsigned number) {
    made[number] = need(open("/etc/kwab/memory", O_RDONLY), "open");
}

static void descriptor_make(unsigned number) {
    made[number] = need(dup(1), "dup");
}

static void eventfd_make(unsigned number) {
    made[number] = need(eventfd(0, 0), "eventfd");
}

static void descriptor_end(unsigned number) {
    need(close((int)made[number]), "close");
}

static void pair_keep(unsigned number, const int ends[2]) {
    made[number] = (long)ends[0] << 32 | ends[1];
}

static void pipe_make(unsigned number) {
    int ends[2];
    need(pipe(ends), "pipe");
    pair_keep(number, ends);
}

static void socketpair_make(unsigned number) {
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    pair_keep(number, ends);
}

static void pair_end(unsigned number) {
    need(close((int)(made[number] >> 32)), "close");
    need(close((int)(made[number] & 0x7fffffff)), "close");
}

static char *name_of(unsigned number) {
    static char name[32];
    snprintf(name, sizeof name, "/tmp/%u", number);
    return name;
}

static void tmpfs_make(unsigned number) {
    int fd = (int)need(open(name_of(number), O_CREAT | O_EXCL | O_RDWR, 0644), "create");
    close(fd);
}

static void tmpfs_end(unsigned number) {
    need(unlink(name_of(number)), "unlink");
}

/* Neighbours differ in their rights, so that none is joined to another. */
static void mapping_make(unsigned number) {
    made[number] = (long)mapped(PAGE, number % 2 ? PROT_READ : PROT_READ | PROT_WRITE);
}

static void mapping_end(unsigned number) {
    need(munmap((void *)made[number], PAGE), "munmap");
}

static char *pages;

static void page_make(unsigned number) {
    if (!pages) pages = room(MOST * PAGE);
    pages[number * PAGE] = 1;
}

static void page_end(unsigned number) {
    if (number == 0) need(munmap(pages, (size_t)MOST * PAGE), "munmap");
}

static const struct Row {
    const char *name;
    unsigned in_step;
    void (*make)(unsigned);
    void (*end)(unsigned);
} rows[] = {
    {"idle", 0, 0, 0},
    {"page", 8192, page_make, page_end},
    {"mapping", 15000, mapping_make, mapping_end},
    {"process", 500, process_make, process_end},
    {"program", 500, program_make, process_end},
    {"thread", THREADS, thread_make, thread_end},
    {"open_file", 50000, file_make, descriptor_end},
    {"descriptor", 50000, descriptor_make, descriptor_end},
    {"eventfd", 20000, eventfd_make, descriptor_end},
    {"pipe", 10000, pipe_make, pair_end},
    {"socketpair", 5000, socketpair_make, pair_end},
    {"tmpfs_file", 10000, tmpfs_make, tmpfs_end},
    {0, 0, 0, 0},
};

static unsigned long figure(const char *text, const char *name) {
    const char *at = strstr(text, name);
    if (!at) fail(name);
    return strtoul(at + strlen(name), 0, 10);
}

typedef struct {
    unsigned long total, free, available;
} Memory;

static Memory memory(void) {
    struct timespec rest = {1, 500000000};
    while (nanosleep(&rest, &rest) == -1 && errno == EINTR) {
    }
    static char text[8192];
    int fd = (int)need(open("/proc/meminfo", O_RDONLY), "meminfo");
    long length = need(read(fd, text, sizeof text - 1), "meminfo");
    close(fd);
    text[length] = 0;
    return (Memory){figure(text, "MemTotal:"), figure(text, "MemFree:"), figure(text, "MemAvailable:")};
}

static void show(const struct Row *row, unsigned long objects) {
    Memory now = memory();
    printf("MEM %s %lu %lu %lu\n", row->name, row->make ? objects : now.total, now.free, now.available);
    fflush(stdout);
}

static void measure(const struct Row *row) {
    show(row, 0);
    if (!row->make) return;
    unsigned count = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned index = 0; index < row->in_step; index++) row->make(count++);
        show(row, count);
    }
    for (unsigned number = 0; number < count; number++) row->end(number);
    Memory left = memory();
    printf("MEM-END %s %lu %lu\n", row->name, left.free, left.available);
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "rest") == 0) rest_forever();
    pid1_prepare();
    struct rlimit many = {1 << 18, 1 << 18};
    need(setrlimit(RLIMIT_NOFILE, &many), "RLIMIT_NOFILE");
    struct rlimit processes = {RLIM_INFINITY, RLIM_INFINITY};
    need(setrlimit(RLIMIT_NPROC, &processes), "RLIMIT_NPROC");
    made = mapped(MOST * sizeof *made, PROT_READ | PROT_WRITE);
    memset(made, 0xff, MOST * sizeof *made);
    char name[32] = "";
    FILE *list = fopen("/etc/kwab/memory", "r");
    if (!list || fscanf(list, "%31s", name) != 1) fail("/etc/kwab/memory");
    fclose(list);
    const struct Row *row = rows;
    while (row->name && strcmp(row->name, name) != 0) row++;
    if (!row->name) fail(name);
    measure(row);
    pid1_finish(0);
}
