/*
 * madvise(2): DONTNEED makes private anonymous pages zero again and private file pages fresh; shared pages keep
 * their data.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "file", 0600);
    int fd = open("file", O_RDWR);
    char *anonymous = fresh_pages(2);
    char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    anonymous[0] = anonymous[PAGE] = shared[0] = file[0] = 'x';
    RESULT(madvise(anonymous, PAGE, MADV_DONTNEED));
    RESULT(madvise(shared, PAGE, MADV_DONTNEED));
    RESULT(madvise(file, PAGE, MADV_DONTNEED));
    say("anonymous %d, its neighbour %c, shared %c, file %c", anonymous[0], anonymous[PAGE], shared[0], file[0]);
    RESULT(madvise(anonymous + 1, PAGE, MADV_DONTNEED));
    RESULT(madvise(anonymous, PAGE, 12345));
    RESULT(madvise(anonymous, 0, MADV_DONTNEED));
    RESULT(madvise(anonymous, PAGE, MADV_NORMAL));
    RESULT(madvise(anonymous, PAGE, MADV_WILLNEED));
    RESULT(madvise(anonymous, PAGE, MADV_SEQUENTIAL));
    need(munmap(anonymous, PAGE) == 0);
    RESULT(madvise(anonymous, 2 * PAGE, MADV_DONTNEED));
    RESULT(anonymous[PAGE]);
    return 0;
}
