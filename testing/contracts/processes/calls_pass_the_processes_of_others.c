/*
 * kill(2), setpgid(2), setsid(2), waitpid(2), fcntl(2): to find a group or a child, or that there is none, costs about
 * the same whether few or thousands of other processes run.
 * contract: timeout=60
 */
#include "../contract.h"

#define OTHERS 1500
#define ATTEMPTS 7
#define CALLS 200

static pid_t last;
static int ends[2];

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int waits(void *unused)
{
    char byte;
    (void)unused;
    close(ends[1]);
    return read(ends[0], &byte, 1) != 0;
}

static void signals_no_group(void)
{
    need(kill(-32767, 0) == -1 && errno == ESRCH);
}

static void joins_no_group(void)
{
    need(setpgid(last, 32767) == -1 && errno == EPERM);
}

static void looks_at_one_child(void)
{
    need(waitpid(last, NULL, WNOHANG) == 0);
}

static void looks_for_a_stranger(void)
{
    need(waitpid(1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void leads_already(void)
{
    need(setsid() == -1 && errno == EPERM);
}

static void (*const bodies[])(void) = {
    signals_no_group, joins_no_group, looks_at_one_child, looks_for_a_stranger, leads_already,
};
static const char *const names[] = {
    "signalling no group", "joining no group", "looking at one child", "looking for a stranger", "leading already",
};

static long long shortest(void (*body)(void))
{
    long long best = LLONG_MAX;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        long long began = now_ns();
        for (int at = 0; at < CALLS; at++)
            body();
        long long took = now_ns() - began;
        best = took < best ? took : best;
    }
    return best;
}

int main(void)
{
    long long few[COUNT_OF(bodies)];
    setsid();
    need(pipe(ends) == 0);
    last = spawn(waits, NULL);
    sleep_ms(20);
    for (size_t at = 0; at < COUNT_OF(bodies); at++)
        few[at] = shortest(bodies[at]);
    for (int at = 1; at < OTHERS; at++)
        last = spawn(waits, NULL);
    sleep_ms(100);
    for (size_t at = 0; at < COUNT_OF(bodies); at++) {
        long long many = shortest(bodies[at]);
        say("%s is %s", names[at], many < 6 * few[at] ? "not six times dearer" : "six times dearer");
    }
    close(ends[1]);
    int reaped = 0;
    while (wait(NULL) > 0)
        reaped++;
    show("reaped", reaped);
    return 0;
}
