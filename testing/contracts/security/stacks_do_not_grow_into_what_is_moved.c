/*
 * mremap(2), mmap(2) MAP_GROWSDOWN: a mapping that is moved below a stack has its place for itself, also while another
 * thread touches that place to make the stack grow into it.
 */
#include "security.h"
#include <setjmp.h>

#define LENGTH (20UL << 20)
#define ROUNDS 40

static char *place;
static volatile int stop;
static __thread sigjmp_buf back;

static void refused(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

static void *touches(void *unused)
{
    while (!stop)
        if (sigsetjmp(back, 1) == 0)
            (void)*(volatile char *)(place + LENGTH - PAGE);
    return unused;
}

/* Mappings that begin before the one below them ends. */
static int overlapping(void)
{
    char line[256];
    unsigned long start, end, last = 0;
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    need(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        need(sscanf(line, "%lx-%lx", &start, &end) == 2);
        count += start < last;
        last = end;
    }
    fclose(maps);
    return count;
}

static int attempt(void *unused)
{
    (void)unused;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS, both = PROT_READ | PROT_WRITE;
    char *room = mmap(NULL, 4 * LENGTH, PROT_NONE, flags, -1, 0);
    need(room != MAP_FAILED && munmap(room, 4 * LENGTH) == 0);
    place = room + LENGTH;
    need(mmap(place + LENGTH, PAGE, both, flags | MAP_FIXED | MAP_GROWSDOWN, -1, 0) == place + LENGTH);
    char *away = mmap(NULL, LENGTH, both, flags | MAP_STACK, -1, 0);
    need(away != MAP_FAILED && madvise(away, LENGTH, MADV_NOHUGEPAGE) == 0);
    memset(away, 1, LENGTH);
    catch_signal(SIGSEGV, refused, 0);
    pthread_t thread;
    need(pthread_create(&thread, NULL, touches, NULL) == 0);
    int failed = 0, twice = 0, lost = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char *moved = mremap(away, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        failed += moved != place;
        twice += overlapping();
        lost += moved == place && (place[0] != 1 || place[LENGTH - 1] != 1);
        if (moved == place)
            need(mremap(place, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away);
    }
    stop = 1;
    need(pthread_join(thread, NULL) == 0);
    show("moves that failed", failed);
    show("addresses of two mappings", twice);
    show("moves that lost pages", lost);
    return 0;
}

int main(void)
{
    scratch();
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
