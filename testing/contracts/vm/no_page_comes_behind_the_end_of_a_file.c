/*
 * ftruncate(2): a file of no length has no pages, also when threads touch mappings of it at the same moment; what they
 * wrote is not there when the file is extended again.
 */
#include "../contract.h"
#include <setjmp.h>

/* So many that pages come at every moment. */
#define PAGES 4096
#define TOUCHING 3
#define LASTS 4000

static char *memory;
static volatile int stop;
static volatile long turns[TOUCHING];
static _Thread_local sigjmp_buf back;

static void behind_the_end(int number) { siglongjmp(back, number); }

static void *touch(void *which)
{
    while (!stop)
        for (volatile int page = 0; page < PAGES && !stop; page++) {
            if (sigsetjmp(back, 1) == 0)
                memory[page * PAGE] = 'x';
            turns[(long)which]++;
        }
    return NULL;
}

/* Until no thread is in a fault any more that began before. */
static void faults_end(void)
{
    for (int at = 0; at < TOUCHING; at++)
        for (long seen = turns[at]; turns[at] < seen + 2;)
            sched_yield();
}

int main(void)
{
    int fd = memfd_create("file", 0), held = 0, kept = 0;
    pthread_t threads[TOUCHING];
    need(fd != -1 && ftruncate(fd, PAGES * PAGE) == 0);
    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(memory != MAP_FAILED);
    catch_signal(SIGBUS, behind_the_end, SA_NODEFER);
    for (long at = 0; at < TOUCHING; at++)
        need(pthread_create(&threads[at], NULL, touch, (void *)at) == 0);
    for (long long started = elapsed_ms(); elapsed_ms() - started < LASTS && !held;) {
        struct stat meta;
        need(ftruncate(fd, 0) == 0);
        faults_end();
        need(fstat(fd, &meta) == 0);
        held += meta.st_blocks != 0;
        need(ftruncate(fd, PAGES * PAGE) == 0);
        /* Some have come, most have not. */
        for (volatile int wait = 0; wait < 20000; wait++)
            ;
    }
    stop = 1;
    for (int at = 0; at < TOUCHING; at++)
        pthread_join(threads[at], NULL);
    need(ftruncate(fd, 0) == 0 && ftruncate(fd, PAGES * PAGE) == 0);
    for (int page = 0; page < PAGES; page++)
        kept += memory[page * PAGE] != 0;
    show("times that a file without length had pages", held);
    show("bytes that were kept", kept);
    return 0;
}
