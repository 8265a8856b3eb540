/*
 * munmap(2), mremap(2), fork(2) of pages far from each other, whose page tables of every level go with them, beside
 * threads that touch the pages all the time: no thread sees a page of another place, none is stuck, a child has what
 * was mapped, and in the end few tables are left (VmPTE of proc(5)).
 * contract: timeout=30
 */
#include "../contract.h"
#include <setjmp.h>

#define GIB (1UL << 30)
#define PLACES 24
#define TOUCHING 3
#define MILLISECONDS 1200

static volatile int stop;
static volatile long strange, rounds_seen[TOUCHING];
static _Thread_local sigjmp_buf back;

static void missed(int number) { siglongjmp(back, number); }

static long tables(void)
{
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY);
    need(fd != -1);
    ssize_t length = read(fd, text, sizeof text - 1);
    need(length > 0);
    close(fd);
    text[length] = 0;
    char *at = strstr(text, "VmPTE:");
    need(at != NULL);
    return atol(at + 6);
}

/* Some share tables of one level or two, some none. */
static char *place(unsigned number)
{
    return (char *)(1024 * GIB + (number % 3) * 700 * GIB + (number / 3) * (GIB / 2));
}

/* Touches a place; whether it was mapped and held what belongs there. */
__attribute__((noinline)) static void touch_one(unsigned number)
{
    if (sigsetjmp(back, 1))
        return;
    volatile char *page = place(number);
    char seen = page[number];
    if (seen != 0 && seen != (char)(number + 1))
        __atomic_add_fetch(&strange, 1, __ATOMIC_SEQ_CST);
    page[number] = (char)(number + 1);
}

static void *touch(void *which)
{
    long own = (long)which;
    for (unsigned at = 1 + own; !stop; at = at * 5 + 1) {
        touch_one(at % PLACES);
        rounds_seen[own]++;
    }
    return NULL;
}

static void map(unsigned number)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    need(mmap(place(number), PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == place(number));
}

/* A child finds every page empty or as it belongs there. */
static int child_sees_strange(void)
{
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        strange = 0;
        for (unsigned number = 0; number < PLACES; number++)
            touch_one(number);
        _exit(strange != 0);
    }
    int status;
    need(waitpid(child, &status, 0) == child);
    return status != 0;
}

int main(void)
{
    struct sigaction action = {.sa_handler = missed};
    need(sigaction(SIGSEGV, &action, NULL) == 0);
    tables();
    long before = tables();
    pthread_t threads[TOUCHING];
    for (long number = 0; number < TOUCHING; number++)
        need(pthread_create(&threads[number], NULL, touch, (void *)number) == 0);
    long long began = elapsed_ms();
    int strange_children = 0;
    unsigned at = 1;
    for (unsigned round = 0; elapsed_ms() - began < MILLISECONDS; round++) {
        for (unsigned number = 0; number < PLACES; number++)
            map(number);
        for (unsigned step = 0; step < PLACES; step++, at = at * 5 + 3) {
            unsigned number = at % PLACES;
            /* Away from where the threads look, and gone from there. */
            char *far = (char *)(8 * 1024 * GIB + number * 2 * GIB);
            if (step % 3 == 0 && mremap(place(number), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, far) == far)
                munmap(far, PAGE);
            else
                munmap(place(number), step % 2 ? PAGE : GIB / 2);
        }
        if (round % 8 == 0)
            strange_children += child_sees_strange();
    }
    stop = 1;
    int all_went_on = 1;
    for (int number = 0; number < TOUCHING; number++) {
        need(pthread_join(threads[number], NULL) == 0);
        all_went_on &= rounds_seen[number] > 16;
    }
    check(strange == 0, "no thread saw a page of another place");
    check(strange_children == 0, "neither did a child");
    check(all_went_on, "every thread went on");
    munmap((char *)(1024 * GIB), 2048 * GIB);
    check(tables() - before <= 128, "few tables are left");
    return 0;
}
