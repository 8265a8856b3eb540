/*
 * futex(2), signal(7): a handler interrupts FUTEX_WAIT with EINTR; with SA_RESTART it waits on unless it has a
 * timeout.
 */
#include "../contract.h"
#include <linux/futex.h>

static volatile int word;
static volatile sig_atomic_t hits;
static void note(int number) { (void)number; hits++; }

static void *pester(void *target)
{
    sleep_ms(50);
    pthread_kill(*(pthread_t *)target, SIGUSR1);
    sleep_ms(50);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return NULL;
}

static void run(const char *title, int flags, const struct timespec *limit)
{
    pthread_t thread, self = pthread_self();
    catch_signal(SIGUSR1, note, flags);
    hits = 0;
    need(pthread_create(&thread, NULL, pester, &self) == 0);
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, limit, NULL, 0);
    say("%s: %s, handler ran %d", title, result ? errno_name(errno) : "woken", (int)hits);
    pthread_join(thread, NULL);
}

int main(void)
{
    struct timespec long_time = { 3, 0 };
    run("plain", 0, NULL);
    run("plain with a timeout", 0, &long_time);
    run("SA_RESTART", SA_RESTART, NULL);
    run("SA_RESTART with a timeout", SA_RESTART, &long_time);
    return 0;
}
