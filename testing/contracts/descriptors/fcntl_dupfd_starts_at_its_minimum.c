/* fcntl(2): F_DUPFD gives the lowest free descriptor not below its argument; F_DUPFD_CLOEXEC also marks it. */
#include "../contract.h"
#include <sys/resource.h>

int main(void)
{
    RESULT(fcntl(1, F_DUPFD, 100));
    RESULT(fcntl(1, F_DUPFD, 100));
    RESULT(fcntl(1, F_DUPFD_CLOEXEC, 100));
    RESULT(fcntl(100, F_GETFD));
    RESULT(fcntl(102, F_GETFD));
    RESULT(fcntl(1, F_DUPFD, -1));
    RESULT(fcntl(77, F_DUPFD, 0));
    struct rlimit limit = { 128, 128 };
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    RESULT(fcntl(1, F_DUPFD, 127));
    RESULT(fcntl(1, F_DUPFD, 127));
    RESULT(fcntl(1, F_DUPFD, 128));
    RESULT(fcntl(1, 12345, 0));
    return 0;
}
