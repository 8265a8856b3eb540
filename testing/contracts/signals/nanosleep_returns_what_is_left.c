/*
 * nanosleep(2): interrupted, it stores the time not slept; bad nanoseconds are EINVAL; a handler does not shorten
 * clock_nanosleep to an absolute time when repeated.
 */
#include "../contract.h"

static void handler(int number) { (void)number; }

int main(void)
{
    catch_signal(SIGALRM, handler, 0);
    struct itimerval soon = { .it_value = { 0, 50000 } };
    struct timespec wanted = { 5, 0 }, left = { 0, 0 };
    need(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    RESULT(nanosleep(&wanted, &left));
    say("left between 3 and 5 seconds %d", left.tv_sec == 4 || left.tv_sec == 3);
    wanted = (struct timespec){ 0, 1000000000 };
    RESULT(nanosleep(&wanted, NULL));
    wanted = (struct timespec){ -1, 0 };
    RESULT(nanosleep(&wanted, NULL));
    wanted = (struct timespec){ 0, 0 };
    RESULT(nanosleep(&wanted, NULL));
    RESULT(syscall(SYS_nanosleep, BAD_POINTER, NULL));
    section("clock_nanosleep returns the error number");
    RESULT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wanted, NULL));
    RESULT(clock_nanosleep(77, 0, &wanted, NULL) == EINVAL);
    need(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    clock_gettime(CLOCK_MONOTONIC, &wanted);
    wanted.tv_sec += 3;
    left = (struct timespec){ 77, 77 };
    RESULT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wanted, &left) == EINTR);
    say("an absolute sleep leaves the rest alone %d", left.tv_sec == 77 && left.tv_nsec == 77);
    return 0;
}
