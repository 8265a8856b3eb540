/*
 * setrlimit(2) RLIMIT_FSIZE, truncate(2), fallocate(2), write(2): a file that is larger than the limit may keep its
 * size, shrink, and be allocated within it; what would make it grow beyond the limit is EFBIG and SIGXFSZ, and so is a
 * write behind the limit.
 */
#include "../contract.h"
#include <sys/resource.h>

#define LIMIT 4096
#define SIZE 10000

static volatile int told;
static void tell(int signal) { told += signal == SIGXFSZ; }

#define GROWS(call) (told = 0, RESULT(call), show("signals", told))

int main(void)
{
    struct rlimit limit = { LIMIT, LIMIT };
    char byte = 1;
    scratch();
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    need(fd != -1 && ftruncate(fd, SIZE) == 0 && signal(SIGXFSZ, tell) != SIG_ERR);
    need(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    section("as large as it is");
    GROWS(ftruncate(fd, SIZE));
    GROWS(truncate("file", SIZE));
    GROWS(fallocate(fd, 0, 0, SIZE));
    GROWS(fallocate(fd, FALLOC_FL_KEEP_SIZE, LIMIT, SIZE - LIMIT));
    GROWS(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE));
    section("larger");
    GROWS(ftruncate(fd, SIZE + 1));
    GROWS(truncate("file", SIZE + 1));
    GROWS(fallocate(fd, 0, 0, SIZE + 1));
    GROWS(fallocate(fd, FALLOC_FL_KEEP_SIZE, SIZE, 1));
    section("writes");
    GROWS(pwrite(fd, &byte, 1, LIMIT));
    GROWS(pwrite(fd, &byte, 0, LIMIT));
    GROWS(pwrite(fd, &byte, 1, LIMIT - 1));
    section("smaller");
    GROWS(ftruncate(fd, LIMIT + 1));
    GROWS(ftruncate(fd, LIMIT + 1));
    GROWS(ftruncate(fd, LIMIT));
    GROWS(ftruncate(fd, LIMIT + 1));
    return 0;
}
