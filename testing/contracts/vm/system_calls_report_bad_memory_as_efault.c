/*
 * errno(3): kernel copies to unmapped, read-only or forbidden user memory fail with EFAULT, without a signal;
 * partial work counts.
 */
#include "../contract.h"
#include <sys/utsname.h>

int main(void)
{
    int ends[2];
    need(pipe(ends) == 0);
    char *area = fresh_pages(3);
    memset(area, 'a', 3 * PAGE);
    need(munmap(area + PAGE, PAGE) == 0 && mprotect(area + 2 * PAGE, PAGE, PROT_READ) == 0);
    RESULT(write(ends[1], area + 2 * PAGE, 10));
    RESULT(read(ends[0], area + 2 * PAGE, 10));
    RESULT(read(ends[0], area, 10));
    RESULT(write(ends[1], area + PAGE, 10));
    RESULT(write(ends[1], area + PAGE - 5, 10));
    scratch();
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    RESULT(write(fd, area + PAGE - 5, 10));
    RESULT(write(fd, area, 10));
    RESULT(pread(fd, area + PAGE - 3, 10, 0));
    RESULT(syscall(SYS_uname, area + 2 * PAGE));
    RESULT(syscall(SYS_clock_gettime, 9999, area));
    RESULT(syscall(SYS_gettimeofday, BAD_POINTER, NULL));
    RESULT(write(fd, (void *)0xffff800000000000UL, 10));
    RESULT(read(fd, (void *)0xffffffff81000000UL, 10));
    RESULT(write(fd, (void *)0x7ffffffff000UL, 10));
    struct utsname name;
    RESULT(uname(&name));
    need(mprotect(area, PAGE, PROT_NONE) == 0);
    OUTCOME(open(area, O_RDONLY));
    need(mprotect(area, PAGE, PROT_READ) == 0);
    OUTCOME(open(area + PAGE - 4, O_RDONLY));
    return 0;
}
