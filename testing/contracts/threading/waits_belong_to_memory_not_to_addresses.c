/*
 * futex(2): a private wait belongs to an address of the space, whatever is mapped there meanwhile; a shared one to the
 * memory, wherever it is mapped: it is woken at the new place of what was moved, and not by what took the old one.
 */
#include "../contract.h"
#include <linux/futex.h>

static volatile int waits, result;

static long futex(volatile int *word, int operation, int value, long timeout_ms)
{
    struct timespec time = { timeout_ms / 1000, timeout_ms % 1000 * 1000000 };
    return syscall(SYS_futex, word, operation, value, timeout_ms ? &time : NULL, NULL, 0);
}

struct wait {
    volatile int *word;
    int operation;
};

static void *waiter(void *argument)
{
    struct wait *wait = argument;
    waits = 1;
    result = futex(wait->word, wait->operation, 0, 9000) == 0 ? 0 : errno;
    return NULL;
}

/* Starts a thread that waits, and returns once it sleeps. */
static pthread_t start(struct wait *wait)
{
    pthread_t thread;
    waits = 0;
    need(pthread_create(&thread, NULL, waiter, wait) == 0);
    while (!waits)
        sched_yield();
    sleep_ms(100);
    return thread;
}

static char *pages(int flags)
{
    char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    need(at != MAP_FAILED);
    return at;
}

static void finish(pthread_t thread)
{
    need(pthread_join(thread, NULL) == 0);
    say("the wait: %s", errno_name(result));
}

int main(void)
{
    section("private, replaced");
    char *at = pages(MAP_PRIVATE);
    struct wait wait = { (int *)at, FUTEX_WAIT_PRIVATE };
    pthread_t thread = start(&wait);
    need(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    RESULT(futex((int *)at, FUTEX_WAKE_PRIVATE, 9, 0));
    finish(thread);

    section("private, unmapped");
    thread = start(&wait);
    need(munmap(at, PAGE) == 0);
    RESULT(futex((int *)at, FUTEX_WAIT_PRIVATE, 0, 1));
    RESULT(futex((int *)at, FUTEX_WAKE_PRIVATE, 9, 0));
    finish(thread);

    section("private, moved");
    at = pages(MAP_PRIVATE);
    wait.word = (int *)at;
    thread = start(&wait);
    char *to = mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, pages(MAP_PRIVATE));
    need(to != MAP_FAILED);
    RESULT(futex((int *)to, FUTEX_WAKE_PRIVATE, 9, 0));
    RESULT(futex((int *)at, FUTEX_WAKE_PRIVATE, 9, 0));
    finish(thread);

    section("shared, moved");
    at = pages(MAP_SHARED);
    wait = (struct wait){ (int *)(at + PAGE + 8), FUTEX_WAIT };
    thread = start(&wait);
    to = mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, pages(MAP_PRIVATE));
    need(to != MAP_FAILED);
    RESULT(futex((int *)(at + PAGE + 8), FUTEX_WAKE, 9, 0));
    need(mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    RESULT(futex((int *)(at + PAGE + 8), FUTEX_WAKE, 9, 0));
    RESULT(futex((int *)(to + 8), FUTEX_WAKE, 9, 0));
    RESULT(futex((int *)(to + PAGE + 8), FUTEX_WAKE, 9, 0));
    finish(thread);

    section("a file, mapped twice and cut");
    int fd = memfd_create("words", 0);
    need(fd != -1 && ftruncate(fd, 2 * PAGE) == 0);
    char *one = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(one != MAP_FAILED && two != MAP_FAILED);
    wait = (struct wait){ (int *)(one + PAGE), FUTEX_WAIT };
    thread = start(&wait);
    need(ftruncate(fd, PAGE) == 0);
    RESULT(futex((int *)(two + PAGE), FUTEX_WAKE, 9, 0));
    RESULT(futex((int *)(two + PAGE), FUTEX_WAIT, 0, 1));
    need(ftruncate(fd, 2 * PAGE) == 0);
    RESULT(futex((int *)(two + PAGE), FUTEX_WAKE, 9, 0));
    finish(thread);
    return 0;
}
