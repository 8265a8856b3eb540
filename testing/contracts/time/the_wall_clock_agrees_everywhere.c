/* time(2), gettimeofday(2): all ways to ask the wall clock agree, and file times come from it. */
#include "../contract.h"

int main(void)
{
    struct timeval day;
    struct timespec clock;
    struct stat meta;
    scratch();
    RESULT(gettimeofday(&day, NULL));
    time_t seconds = syscall(SYS_time, NULL), stored;
    need(clock_gettime(CLOCK_REALTIME, &clock) == 0);
    put_file("file", "x", 0600);
    need(stat("file", &meta) == 0);
    check(seconds - day.tv_sec >= 0 && seconds - day.tv_sec < 5, "time(2) agrees with gettimeofday(2)");
    check(clock.tv_sec - day.tv_sec >= 0 && clock.tv_sec - day.tv_sec < 5, "clock_gettime(2) agrees");
    check(meta.st_mtim.tv_sec - day.tv_sec >= -1 && meta.st_mtim.tv_sec - day.tv_sec < 5, "file times agree");
    check(day.tv_sec > 1600000000, "the year is after 2020");
    check(day.tv_usec >= 0 && day.tv_usec < 1000000, "microseconds in range");
    show("stored as returned", syscall(SYS_time, &stored) - stored);
    RESULT(syscall(SYS_time, BAD_POINTER));
    return 0;
}
