/*
 * null(4), full(4), random(4): null swallows and ends, zero and full give zeros, full refuses, urandom gives
 * noise.
 */
#include "../contract.h"

int main(void)
{
    char block[64], other[64], none[64] = { 0 };
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR), full = open("/dev/full", O_RDWR);
    int random = open("/dev/urandom", O_RDONLY);
    need(null != -1 && zero != -1 && full != -1 && random != -1);
    RESULT(write(null, block, 64));
    RESULT(read(null, block, 64));
    RESULT(read(zero, block, 64));
    show("zeros", memcmp(block, none, 64) == 0);
    RESULT(write(zero, block, 64));
    RESULT(write(full, block, 64));
    RESULT(read(full, block, 64));
    RESULT(read(random, block, 64));
    RESULT(read(random, other, 64));
    show("noise differs", memcmp(block, other, 64) != 0);
    RESULT(lseek(null, 10, SEEK_SET));
    RESULT(lseek(zero, 0, SEEK_END));
    char *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    need(map != MAP_FAILED);
    map[5] = 1;
    say("mapped zero %d", map[6]);
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, null, 0));
    RESULT(ftruncate(null, 5));
    OUTCOME(open("/dev/null/x", O_RDONLY));
    OUTCOME(open("/dev/null", O_WRONLY | O_TRUNC | O_CREAT, 0600));
    const char *links[] = { "/dev/ptmx", "/dev/tty", "/dev/console", "/dev/kmsg" };
    for (size_t i = 0; i < COUNT_OF(links); i++)
        say("%s: %s", links[i], access(links[i], F_OK) ? errno_name(errno) : "present");
    return 0;
}
