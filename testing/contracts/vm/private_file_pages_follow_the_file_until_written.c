/* mmap(2): a private file map shows the page cache until its page is written; then the copy is its own for good. */
#include "../contract.h"

int main(void)
{
    scratch();
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    static char block[2 * PAGE];
    memset(block, 'a', sizeof block);
    need(write(fd, block, sizeof block) == sizeof block);
    char *alone = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    need(alone != MAP_FAILED);
    alone[0] = 'p';
    need(pwrite(fd, "W", 1, 1) == 1 && pwrite(fd, "W", 1, PAGE + 1) == 1);
    say("written page %.3s", alone);
    say("its own copy missed the write %d", alone[1] == 'a');
    char byte;
    need(pread(fd, &byte, 1, 0) == 1);
    say("the file has %c", byte);
    pid_t child = fork();
    if (child == 0) {
        alone[2] = 'c';
        say("child %.3s", alone);
        _exit(0);
    }
    reap(child);
    say("parent %.3s", alone);
    need(madvise(alone, PAGE, MADV_DONTNEED) == 0);
    say("forgotten %.3s", alone);
    int in = open("file", O_RDONLY);
    char *readable = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, in, 0);
    RESULT(mprotect(readable, PAGE, PROT_READ | PROT_WRITE));
    readable[0] = 'r';
    need(pread(fd, &byte, 1, 0) == 1);
    say("map %c file %c", readable[0], byte);
    return 0;
}
