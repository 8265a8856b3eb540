/*
 * mmap(2): the last page is filled with zeros, pages beyond the file raise SIGBUS, and shrinking the file moves
 * the border.
 */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

static void probe(const char *what, char *where)
{
    int number = sigsetjmp(back, 1);
    if (number)
        say("%s: %s", what, signal_name(number));
    else
        say("%s: %d", what, *(volatile char *)where);
}

int main(void)
{
    catch_signal(SIGSEGV, note, 0);
    catch_signal(SIGBUS, note, 0);
    scratch();
    put_file("file", "abc", 0600);
    int fd = open("file", O_RDWR);
    char *area = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    probe("inside", area + 2);
    probe("tail of the page", area + 100);
    probe("next page", area + PAGE);
    area[100] = 'x';
    struct stat meta;
    need(fstat(fd, &meta) == 0);
    show("size", meta.st_size);
    need(ftruncate(fd, 2 * PAGE) == 0);
    probe("next page after growing", area + PAGE);
    probe("third page", area + 2 * PAGE);
    area[PAGE] = 'y';
    need(ftruncate(fd, 3) == 0);
    probe("next page after shrinking", area + PAGE);
    need(ftruncate(fd, 2 * PAGE) == 0);
    probe("next page grown once more", area + PAGE);
    probe("unmapped", bad_pointer());
    char *beyond = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 100 * PAGE);
    probe("mapped wholly past the end", beyond);
    section("system calls say EFAULT instead");
    need(ftruncate(fd, 3) == 0);
    int ends[2];
    need(pipe(ends) == 0);
    RESULT(write(ends[1], area + PAGE, 1));
    return 0;
}
