/*
 * mremap(2), fcntl(2) F_SEAL_WRITE: a move that fails because there are as many ranges as permitted moves nothing. A
 * page left at the target, where no range is, would be written after the file was sealed.
 * contract: timeout=40
 */
#include "security.h"
#include <setjmp.h>

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

static const char *store(volatile char *where)
{
    int number = sigsetjmp(back, 1);
    if (number)
        return signal_name(number);
    *where = '!';
    return "stored";
}

static int attempt(void *unused)
{
    (void)unused;
    int fd = syscall(SYS_memfd_create, "sealed", 2);
    need(fd != -1 && ftruncate(fd, 3 * PAGE) == 0);
    char *many = mmap(NULL, 140000 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(many != MAP_FAILED);
    char *three = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *hole = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(three != MAP_FAILED && hole != MAP_FAILED && munmap(hole, 64 * PAGE) == 0);
    char *target = hole + 32 * PAGE;
    memset(three, 'a', 3 * PAGE);
    long at = 1;
    while (at < 140000 && mprotect(many + at * PAGE, PAGE, PROT_READ) == 0)
        at += 2;
    check(at > 60000 && at < 140000, "there are as many ranges as permitted");
    catch_signal(SIGSEGV, note, 0);
    errno = 0;
    void *moved = mremap(three + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    say("move: %s", moved == MAP_FAILED ? errno_name(errno) : "ok");
    moved = mremap(three + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | 4, NULL);
    say("move that leaves the old range: %s", moved == MAP_FAILED ? errno_name(errno) : "ok");
    need(munmap(many, 140000 * PAGE) == 0);
    show("the middle page is where it was", three[PAGE] == 'a');
    need(munmap(three, 3 * PAGE) == 0);
    OUTCOME(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    say("a store at the target: %s", store(target));
    char byte = 0;
    need(pread(fd, &byte, 1, PAGE) == 1);
    say("the sealed file has %c", byte);
    return 0;
}

int main(void)
{
    show_status("the user", as_nobody(attempt, NULL));
    return 0;
}
