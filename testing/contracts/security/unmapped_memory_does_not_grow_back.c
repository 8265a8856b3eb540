/*
 * munmap(2), MAP_GROWSDOWN of mmap(2): memory that is unmapped is gone, also while another thread reaches for what was
 * its beginning: what is left of it for a moment does not grow down over what is gone.
 */
#include "security.h"
#include <setjmp.h>
#include <sys/resource.h>

#define SIZE (48UL << 20)
#define ROUNDS 6

static char *volatile memory;
static volatile int stop;
static sigjmp_buf back;

static void missed(int number) { siglongjmp(back, number); }

/* Reaches for the first pages again and again, whether they are there or not. */
static void *reach(void *unused)
{
    while (!stop)
        for (volatile int page = 0; page < 512; page += 8)
            if (sigsetjmp(back, 1) == 0 && memory)
                (void)*(volatile char *)(memory + page * PAGE);
    return unused;
}

static int attempt(void *unused)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    pthread_t thread;
    int left = 0;
    /* How far a range may grow. */
    need(setrlimit(RLIMIT_STACK, &limit) == 0);
    need(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    catch_signal(SIGSEGV, missed, SA_NODEFER);
    need(pthread_create(&thread, NULL, reach, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_POPULATE, -1, 0);
        unsigned char present[16];
        need(at != MAP_FAILED);
        memory = at;
        sleep_ms(2);
        need(munmap(at, SIZE) == 0);
        for (unsigned long piece = 0; piece < SIZE; piece += 16 * PAGE)
            for (int page = 0; page < 16; page++)
                left += mincore(at + piece + page * PAGE, PAGE, present) == 0;
        memory = NULL;
        /* What is left would be there in the next round. */
        munmap(at, SIZE);
    }
    stop = 1;
    pthread_join(thread, NULL);
    show("pages that came back", left);
    return unused != NULL;
}

int main(void)
{
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
