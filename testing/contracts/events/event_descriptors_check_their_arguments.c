/* eventfd(2), signalfd(2), timerfd_create(2): flags, sizes, values and descriptors that are refused. */
#include "contract.h"
#include <sys/eventfd.h>
#include <sys/timerfd.h>

int main(void)
{
    uint64_t word = 0;
    uint32_t half = 1;
    sigset_t set;
    sigemptyset(&set);
    section("eventfd");
    RESULT(syscall(SYS_eventfd2, 0, 2));
    RESULT(syscall(SYS_eventfd2, 0, EFD_NONBLOCK | 4));
    int event = eventfd(0, EFD_NONBLOCK);
    RESULT(read(event, &word, 8));
    RESULT(read(event, &half, 4));
    RESULT(write(event, &half, 4));
    word = UINT64_MAX;
    RESULT(write(event, &word, 8));
    word = UINT64_MAX - 1;
    RESULT(write(event, &word, 8));
    word = 1;
    RESULT(write(event, &word, 8));
    RESULT(read(event, BAD_POINTER, 8));
    RESULT(pread(event, &word, 8, 0));
    RESULT(lseek(event, 0, SEEK_SET));
    RESULT(ftruncate(event, 0));
    RESULT(fsync(event));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, event, 0));
    section("signalfd");
    RESULT(syscall(SYS_signalfd4, -1, &set, 4, 0));
    RESULT(syscall(SYS_signalfd4, -1, &set, 8, 2));
    RESULT(syscall(SYS_signalfd4, -1, BAD_POINTER, 8, 0));
    RESULT(syscall(SYS_signalfd4, event, &set, 8, 0));
    RESULT(syscall(SYS_signalfd4, 999, &set, 8, 0));
    int signals = syscall(SYS_signalfd4, -1, &set, 8, O_NONBLOCK);
    char info[200];
    RESULT(read(signals, info, 127));
    RESULT(read(signals, info, 128));
    RESULT(write(signals, info, 128));
    section("timerfd");
    struct itimerspec off = { 0 }, wrong = { .it_value = { 0, -1 } }, old;
    RESULT(timerfd_create(77, 0));
    RESULT(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
    RESULT(timerfd_create(CLOCK_MONOTONIC_RAW, 0));
    RESULT(timerfd_create(CLOCK_MONOTONIC, 2));
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    RESULT(timerfd_settime(timer, 4, &off, NULL));
    RESULT(timerfd_settime(timer, 0, &wrong, NULL));
    RESULT(syscall(SYS_timerfd_settime, timer, 0, BAD_POINTER, NULL));
    RESULT(syscall(SYS_timerfd_settime, timer, 0, &off, BAD_POINTER));
    RESULT(timerfd_settime(event, 0, &off, NULL));
    RESULT(timerfd_settime(999, 0, &off, NULL));
    RESULT(timerfd_settime(999, 0, &wrong, NULL));
    RESULT(timerfd_gettime(event, &old));
    RESULT(syscall(SYS_timerfd_gettime, timer, BAD_POINTER));
    RESULT(read(timer, &word, 8));
    RESULT(read(timer, &half, 4));
    RESULT(write(timer, &word, 8));
    return 0;
}
