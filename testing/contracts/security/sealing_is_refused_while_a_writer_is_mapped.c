/*
 * fcntl(2), F_SEAL_WRITE: EBUSY while any shared writable mapping exists, in whichever process and in however many
 * pieces.
 */
#include "security.h"

#define RW (PROT_READ | PROT_WRITE)

static int make(void)
{
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    need(fd != -1 && ftruncate(fd, 4 * PAGE) == 0);
    return fd;
}

static char *map(int fd, int prot)
{
    char *memory = mmap(NULL, 4 * PAGE, prot, MAP_SHARED, fd, 0);
    need(memory != MAP_FAILED);
    return memory;
}

static int stop[2];

static void hold(void)
{
    close(stop[1]);
}

int main(void)
{
    section("a mapping that shrinks, splits and moves");
    int fd = make();
    char *memory = map(fd, RW);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    need(munmap(memory + PAGE, PAGE) == 0);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    need(munmap(memory, PAGE) == 0);
    char *moved = mremap(memory + 2 * PAGE, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE);
    need(moved != MAP_FAILED);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    need(munmap(moved, 3 * PAGE) == 0);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    RESULT(fcntl(fd, F_GET_SEALS));
    section("one that is not writable now");
    fd = make();
    memory = map(fd, RW);
    need(mprotect(memory, 4 * PAGE, PROT_READ) == 0);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    need(munmap(memory, 4 * PAGE) == 0);
    memory = map(fd, PROT_READ);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    section("a child's");
    fd = make();
    memory = map(fd, RW);
    need(pipe(stop) == 0);
    pid_t child = start_victim(hold);
    need(munmap(memory, 4 * PAGE) == 0);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    end_victim("child", child);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    section("private mappings do not count");
    fd = make();
    need(mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    return 0;
}
