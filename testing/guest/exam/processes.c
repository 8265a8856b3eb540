/* Programs that make processes and threads, and wait for them. */
#include "exam.h"

static char own[512 * PAGE];

static int writes_and_stays(void *unused) {
    (void)unused;
    own[0] = 1;
    while (pause() == -1) continue;
    return 0;
}

/* Children write their memory and end; the last one, on a stack of its own, still lives when the dump is taken. */
void children(void) {
    for (int round = 0; round < 24; round++) {
        pid_t child = fork();
        if (child == 0) {
            memset(own, round, sizeof own);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (own[5] != 0) puts("a child wrote its parent's memory");
    }
    static char stack[16 * PAGE];
    if (clone(writes_and_stays, stack + sizeof stack, SIGCHLD, 0) == -1) exit(2);
    usleep(100000);
    if (own[0] != 0) puts("a child writes its parent's memory");
}

/* A program is started the way a shell does it, and waited for. */
void spawn(void) {
    for (int round = 0; round < 4; round++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/busybox", "true", (char *)0);
            _exit(1);
        }
        int status = 0;
        waitpid(child, &status, 0);
    }
}

static void *shared;
static atomic_int stage;

/* Reads a page until it is gone. */
static void *reads(void *unused) {
    (void)unused;
    volatile char *page = shared;
    atomic_store(&stage, 1);
    while (atomic_load(&stage) < 2) {
        if (!SURVIVES((void)*page)) break;
    }
    atomic_store(&stage, 3);
    while (atomic_load(&stage) < 5) continue;
    return 0;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A page is unmapped while another thread reads it. */
void threads(void) {
    exam_watch();
    shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(shared, 1, PAGE);
    atomic_store(&stage, 0);
    pthread_t reader;
    if (pthread_create(&reader, 0, reads, 0) != 0) exit(2);
    while (atomic_load(&stage) == 0) sched_yield();
    munmap(shared, PAGE);
    double begun = seconds();
    while (atomic_load(&stage) == 1 && seconds() - begun < 0.3) continue;
    int still = 1;
    if (atomic_compare_exchange_strong(&stage, &still, 2)) puts("a page is read after it was unmapped");
    while (atomic_load(&stage) < 3) sched_yield();
    atomic_store(&stage, 5);
    pthread_join(reader, 0);
}
