/* clock_nanosleep(2): setting the wall clock forward ends absolute wall-clock sleeps but not relative ones. */
#include "../contract.h"

static int mover(void *unused)
{
    (void)unused;
    struct timespec time;
    sleep_ms(50);
    need(clock_gettime(CLOCK_REALTIME, &time) == 0);
    time.tv_sec += 500;
    need(clock_settime(CLOCK_REALTIME, &time) == 0);
    sleep_ms(150);
    need(clock_gettime(CLOCK_REALTIME, &time) == 0);
    time.tv_sec -= 500;
    return clock_settime(CLOCK_REALTIME, &time) ? 1 : 0;
}

int main(void)
{
    struct timespec target;
    pid_t child = spawn(mover, NULL);
    need(clock_gettime(CLOCK_REALTIME, &target) == 0);
    target.tv_sec += 100;
    long long start = elapsed_ms();
    RESULT(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &target, NULL));
    check(elapsed_ms() - start < 5000, "the absolute sleep ended when the clock passed it");
    show_status("mover", reap(child));
    child = spawn(mover, NULL);
    start = elapsed_ms();
    struct timespec relative = { 0, 120000000 };
    RESULT(clock_nanosleep(CLOCK_REALTIME, 0, &relative, NULL));
    check(elapsed_ms() - start >= 120, "the relative sleep kept its length");
    show_status("mover", reap(child));
    return 0;
}
