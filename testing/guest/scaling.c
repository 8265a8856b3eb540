/*
 * The init of a scaling run: the same operation by one worker per processor, counted over a while.
 *
 * /etc/kwab/scaling holds the milliseconds of a row, how often each is repeated, and the rows, one word a line. A row
 * prints "SCALE <name> <workers> <operations> <nanoseconds>" for each repetition, and behind the last one what the
 * kernel counted of contended locks since boot, "LOCKS <name> <line of /proc/kwab-locks>", where there is such a file.
 * Workers are processes with nothing in common but what the row is about; each of them has a directory of its own.
 */
#include "pid1.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define MOST_WORKERS 16
#define FAULT_PAGES 64
#define CALLS 64

/* What workers and parent share; each counter has a cache line. */
typedef struct {
    volatile unsigned ready, go, stop;
    struct {
        volatile unsigned long operations;
        char apart[120];
    } worker[MOST_WORKERS];
} Shared;

static Shared *shared;

__attribute__((noreturn)) static void fail(const char *what) {
    printf("SCALE-FAILED %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

static long need(long value, const char *what) {
    if (value == -1) fail(what);
    return value;
}

static void file_once(void) {
    int fd = (int)need(open("file", O_CREAT | O_EXCL | O_RDWR, 0644), "open");
    close(fd);
    need(unlink("file"), "unlink");
}

static void wait_for(pid_t child) {
    int status = 0;
    need(child, "fork");
    need(waitpid(child, &status, 0), "waitpid");
    if (status != 0) fail("a child");
}

static void exec_once(void) {
    char *const arguments[] = {"/bin/true", 0};
    pid_t child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    wait_for(child);
}

static void fork_once(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    wait_for(child);
}

static void *nothing(void *unused) {
    return unused;
}

static void thread_once(void) {
    pthread_t thread;
    if (pthread_create(&thread, 0, nothing, 0) != 0) fail("pthread_create");
    if (pthread_join(thread, 0) != 0) fail("pthread_join");
}

static void pipe_once(void) {
    static int ends[2];
    static char bytes[512];
    if (ends[1] == 0) need(pipe(ends), "pipe");
    if (write(ends[1], bytes, sizeof bytes) != sizeof bytes || read(ends[0], bytes, sizeof bytes) != sizeof bytes) {
        fail("pipe");
    }
}

static void fault_once(void) {
    char *pages = mmap(0, FAULT_PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) fail("mmap");
    for (int page = 0; page < FAULT_PAGES; page++) pages[page * 4096] = 1;
    munmap(pages, FAULT_PAGES * 4096);
}

static void calls_once(void) {
    for (int call = 0; call < CALLS; call++) syscall(SYS_getppid);
}

static const struct Row {
    const char *name;
    void (*once)(void);
} rows[] = {{"file", file_once}, {"exec", exec_once}, {"fork", fork_once},   {"thread", thread_once},
            {"pipe", pipe_once}, {"fault", fault_once}, {"calls", calls_once}, {0, 0}};

static void work(const struct Row *row, unsigned number) {
    char place[32];
    snprintf(place, sizeof place, "/tmp/worker-%u", number);
    if (mkdir(place, 0755) == -1 && errno != EEXIST) fail(place);
    need(chdir(place), place);
    row->once();
    __atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
    while (!shared->go) syscall(SYS_sched_yield);
    unsigned long operations = 0;
    while (!shared->stop) {
        row->once();
        operations++;
    }
    shared->worker[number].operations = operations;
    _exit(0);
}

static unsigned long long now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

static void measure(const struct Row *row, unsigned workers, unsigned long milliseconds) {
    pid_t children[MOST_WORKERS];
    memset(shared, 0, sizeof *shared);
    for (unsigned number = 0; number < workers; number++) {
        children[number] = fork();
        if (children[number] == 0) work(row, number);
        need(children[number], "fork");
    }
    while (shared->ready < workers) usleep(1000);
    unsigned long long began = now();
    shared->go = 1;
    struct timespec rest = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000 * 1000000)};
    while (nanosleep(&rest, &rest) == -1 && errno == EINTR) {
    }
    shared->stop = 1;
    unsigned long long took = now() - began;
    unsigned long operations = 0;
    for (unsigned number = 0; number < workers; number++) {
        int status = 0;
        need(waitpid(children[number], &status, 0), "waitpid");
        if (status != 0) pid1_finish(1);
        operations += shared->worker[number].operations;
    }
    printf("SCALE %s %u %lu %llu\n", row->name, workers, operations, took);
    fflush(stdout);
}

static void show_locks(const char *name) {
    FILE *file = fopen("/proc/kwab-locks", "r");
    if (!file) return;
    for (char line[512]; fgets(line, sizeof line, file);) printf("LOCKS %s %s", name, line);
    fclose(file);
    fflush(stdout);
}

int main(void) {
    pid1_prepare();
    unsigned workers = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    if (workers > MOST_WORKERS) workers = MOST_WORKERS;
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *list = fopen("/etc/kwab/scaling", "r");
    unsigned long milliseconds = 0;
    unsigned rounds = 0;
    char name[32];
    if (shared == MAP_FAILED || !list || fscanf(list, "%lu %u", &milliseconds, &rounds) != 2) {
        printf("SCALE-FAILED set-up\n");
        fflush(stdout);
        pid1_finish(1);
    }
    show_locks("boot");
    while (fscanf(list, "%31s", name) == 1) {
        const struct Row *row = rows;
        while (row->name && strcmp(row->name, name) != 0) row++;
        if (!row->name) pid1_finish(1);
        for (unsigned round = 0; round < rounds; round++) measure(row, workers, milliseconds);
        show_locks(name);
    }
    pid1_finish(0);
}
