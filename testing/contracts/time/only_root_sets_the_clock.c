/*
 * clock_settime(2), adjtimex(2): an ordinary user gets EPERM, the monotonic clock is EINVAL, and root's change
 * takes effect.
 */
#include "../contract.h"
#include <sys/timex.h>

static int user(void *unused)
{
    struct timespec time = { 1700000000, 0 };
    struct timex adjust = { .modes = 0 };
    (void)unused;
    need(setuid(1000) == 0);
    RESULT(clock_settime(CLOCK_REALTIME, &time));
    RESULT(settimeofday(&(struct timeval){ 1700000000, 0 }, NULL));
    show("reading the adjustment", adjtimex(&adjust) >= 0);
    adjust.modes = ADJ_OFFSET;
    RESULT(adjtimex(&adjust));
    return 0;
}

int main(void)
{
    struct timespec before, moved, after;
    show_status("user", in_child(user, NULL));
    need(clock_gettime(CLOCK_REALTIME, &before) == 0);
    long long start = elapsed_ms();
    moved = before, moved.tv_sec += 1000;
    RESULT(clock_settime(CLOCK_REALTIME, &moved));
    need(clock_gettime(CLOCK_REALTIME, &after) == 0);
    check(after.tv_sec - before.tv_sec >= 1000 && after.tv_sec - before.tv_sec < 1010, "the wall clock moved");
    check(elapsed_ms() - start < 10000, "the monotonic clock did not");
    after.tv_sec -= 1000;
    RESULT(clock_settime(CLOCK_REALTIME, &after));
    RESULT(clock_settime(CLOCK_MONOTONIC, &after));
    after.tv_nsec = -1;
    RESULT(clock_settime(CLOCK_REALTIME, &after));
    return 0;
}
