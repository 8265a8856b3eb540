/* mmap(2): a large sparse area can be mapped beyond memory with MAP_NORESERVE and read as zeros everywhere. */
#include "../contract.h"

int main(void)
{
    size_t size = 16UL << 30;
    char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(area != MAP_FAILED);
    int bits = 0, wrong = 0;
    for (size_t at = 0; at < size; at += 512UL << 20) {
        bits |= area[at];
        area[at + 12345] = (char)(at >> 29);
    }
    for (size_t at = 0; at < size; at += 512UL << 20)
        wrong += area[at + 12345] != (char)(at >> 29);
    say("bits %d wrong %d", bits, wrong);
    pid_t child = fork();
    if (child == 0)
        _exit(area[12345 + (1UL << 30)] == 2 ? 0 : 1);
    show_status("child", reap(child));
    RESULT(munmap(area + (1UL << 30), size - (2UL << 30)));
    say("ends kept %d %d", area[12345 + (512UL << 20)], area[12345 + size - (512UL << 20)]);
    RESULT(munmap(area, size));
    return 0;
}
