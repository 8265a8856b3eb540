/*
 * mmap(2): what the kernel keeps about who has mapped a file does not grow with how often they do: two programs map and
 * unmap one file in turn, and the system has as much memory afterwards as before.
 * contract: timeout=60
 */
#include "../contract.h"

#define FIRST 100
#define TURNS 50000
/* What else the system does takes memory too, but not in each of several rounds; what is kept per mapping does. */
#define ROUNDS 3

static long available(void)
{
    static char text[8192];
    need(get_file("/proc/meminfo", text, sizeof text) > 0);
    char *row = strstr(text, "MemAvailable:");
    need(row);
    return strtol(row + 13, NULL, 10);
}

static _Atomic int *turn;

/* Maps and unmaps the file so often, each time after the other has. */
static int map_in_turn(int fd, int mine, int times)
{
    for (int at = 0; at < times; at++) {
        while (*turn != mine)
            sched_yield();
        char *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
        need(page != MAP_FAILED && munmap(page, PAGE) == 0);
        *turn = !mine;
    }
    return 0;
}

int main(void)
{
    scratch();
    turn = shared_page();
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(fd != -1 && ftruncate(fd, PAGE) == 0);
    pid_t other = fork();
    need(other != -1);
    if (other == 0) {
        map_in_turn(fd, 1, FIRST + ROUNDS * TURNS);
        for (;;)
            pause();
    }
    map_in_turn(fd, 0, FIRST);
    long lost = 400;
    for (int round = 0; round < ROUNDS && lost >= 400; round++) {
        long before = available();
        map_in_turn(fd, 0, TURNS);
        lost = before - available();
    }
    check(lost < 400, "less than 400 KiB went");
    kill(other, SIGKILL);
    show_status("the other", reap(other));
    return 0;
}
