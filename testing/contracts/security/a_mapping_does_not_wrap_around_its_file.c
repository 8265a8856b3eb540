/*
 * mremap(2), mmap(2): a mapping that is moved further and further behind the end of its file never comes round to the
 * file's first page again: what lies beyond the end is SIGBUS, or the kernel refuses to go on.
 * contract: timeout=60
 */
#include "security.h"
#include <setjmp.h>

#define STEP (1UL << 46)

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

static int attempt(void *unused)
{
    (void)unused;
    int fd = syscall(SYS_memfd_create, "file", 0);
    need(fd != -1 && ftruncate(fd, PAGE) == 0 && pwrite(fd, "the first page", 14, 0) == 14);
    off_t last = 0x7ffffffffffff000L - (off_t)PAGE;
    char *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, last);
    need(page != MAP_FAILED);
    catch_signal(SIGBUS, note, 0);
    catch_signal(SIGSEGV, note, 0);
    int bad = 0, refused = 0;
    unsigned long offset = last;
    for (long round = 0; round < 131080 && !refused; round++) {
        char *far = mremap(page, 0, STEP, MREMAP_MAYMOVE);
        refused = far == MAP_FAILED;
        if (refused)
            break;
        munmap(page, PAGE);
        /* The file's first page would be where the offset is 2^64. */
        char *first = offset + STEP < offset ? far - offset : far;
        char *probes[] = { far, first, far + STEP / 2, far + STEP - PAGE };
        for (volatile int at = 0; (round < 4 || first != far) && at < 4; at++) {
            int number = sigsetjmp(back, 1);
            if (number == 0)
                bad += *(volatile char *)probes[at] >= 0;
            else
                bad += number != SIGBUS;
        }
        offset += STEP - PAGE;
        page = far + STEP - PAGE;
        need(munmap(far, STEP - PAGE) == 0);
    }
    show("pages seen beyond the end of the file", bad);
    return 0;
}

int main(void)
{
    show_status("the user", as_nobody(attempt, NULL));
    return 0;
}
