/*
 * timerfd_create(2): a read returns the expirations since the last one, and clears them; zero disarms; absolute
 * past fires at once.
 */
#include "../contract.h"
#include <sys/timerfd.h>

int main(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    uint64_t count = 0;
    struct itimerspec plan = { { 0, 5000000 }, { 0, 5000000 } }, now;
    RESULT(fcntl(fd, F_GETFD));
    RESULT(read(fd, &count, 8));
    RESULT(timerfd_settime(fd, 0, &plan, NULL));
    sleep_ms(50);
    RESULT(read(fd, &count, 8));
    show("several expirations", count >= 5);
    struct pollfd wait = { fd, POLLIN, 0 };
    RESULT(poll(&wait, 1, 3000));
    plan = (struct itimerspec){ 0 };
    RESULT(timerfd_settime(fd, 0, &plan, &now));
    show("old interval", now.it_interval.tv_nsec);
    RESULT(read(fd, &count, 8));
    plan.it_value.tv_nsec = 1;
    RESULT(timerfd_settime(fd, TFD_TIMER_ABSTIME, &plan, NULL));
    RESULT(poll(&wait, 1, 3000));
    RESULT(read(fd, &count, 8));
    show("expirations", count);
    plan.it_value = (struct timespec){ 50, 0 };
    need(timerfd_settime(fd, 0, &plan, NULL) == 0);
    RESULT(timerfd_gettime(fd, &now));
    show("about 50 s left", now.it_value.tv_sec >= 48 && now.it_value.tv_sec <= 50);
    RESULT(read(fd, &count, 4));
    plan.it_value.tv_nsec = 1000000000;
    RESULT(timerfd_settime(fd, 0, &plan, NULL));
    RESULT(timerfd_create(55, 0));
    RESULT(timerfd_create(CLOCK_MONOTONIC, 1));
    RESULT(timerfd_settime(1, 0, &plan, NULL));
    return 0;
}
