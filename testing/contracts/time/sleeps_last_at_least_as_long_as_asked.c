/* nanosleep(2): a sleep never ends early by its clock, relative or absolute, and many short sleeps add up. */
#include "../contract.h"

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void)
{
    long lengths[] = { 1, 1000, 1000000, 10000000, 50000000 };
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        struct timespec wanted = { 0, lengths[i] };
        long long start = now();
        need(nanosleep(&wanted, NULL) == 0);
        say("%ld ns: early %d", lengths[i], now() - start < lengths[i]);
    }
    long long target = now() + 40000000;
    struct timespec absolute = { target / 1000000000, target % 1000000000 };
    RESULT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &absolute, NULL));
    say("absolute: early %d", now() < target);
    long long start = now();
    for (int i = 0; i < 20; i++)
        sleep_ms(1);
    say("twenty of 1 ms: early %d", now() - start < 20000000);
    say("usleep %d", usleep(1000));
    return 0;
}
