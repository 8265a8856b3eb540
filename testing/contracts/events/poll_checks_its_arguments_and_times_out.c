/* poll(2): waits at least its timeout, counts descriptors not bits, and refuses too many or unreadable ones. */
#include "../contract.h"
#include <sys/resource.h>

int main(void)
{
    long long start = elapsed_ms();
    RESULT(poll(NULL, 0, 60));
    long long took = elapsed_ms() - start;
    check(took >= 60, "waited at least its timeout");
    check(took < 2000, "did not wait for seconds");
    struct pollfd waits[3] = { { 1, POLLOUT, 0 }, { 800, POLLIN, 0 }, { -5, POLLIN, 0 } };
    RESULT(poll(waits, 3, 1000));
    RESULT(poll(BAD_POINTER, 1, 0));
    struct rlimit limit = { 20, 20 };
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    static struct pollfd many[30];
    for (int i = 0; i < 30; i++)
        many[i].fd = -1;
    RESULT(poll(many, 20, 0));
    RESULT(poll(many, 21, 0));
    struct timespec wrong = { 0, -1 }, none = { 0, 0 };
    RESULT(ppoll(many, 1, &wrong, NULL));
    RESULT(ppoll(many, 1, &none, NULL));
    return 0;
}
