/*
 * fallocate(2), FALLOC_FL_PUNCH_HOLE: a hole in a file that an ordinary user has mapped many times, every other page of
 * it, takes its time, and the system goes on meanwhile.
 * contract: timeout=60
 */
#include "security.h"
#include <linux/falloc.h>

#define PAGES 24576UL
#define MAPPINGS 4
#define PROCESSES 60
#define PATIENCE "/proc/sys/kernel/watchdog_thresh"

static void set_patience(const char *seconds)
{
    int fd = open(PATIENCE, O_WRONLY);
    need(fd != -1 && write(fd, seconds, strlen(seconds)) > 0);
    close(fd);
}

static int waits(void *unused)
{
    for (;;)
        pause();
    return unused != NULL;
}

static int attack(void *unused)
{
    static pid_t children[PROCESSES];
    int fd = open("file", O_RDWR);
    need(fd != -1);
    need(fallocate(fd, 0, 0, PAGES * PAGE) == 0);
    for (int one = 0; one < MAPPINGS; one++) {
        char *at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        need(at != MAP_FAILED);
        for (unsigned long page = 0; page < PAGES; page += 2)
            need(madvise(at + page * PAGE, PAGE, MADV_DONTNEED) == 0);
    }
    for (int one = 0; one < PROCESSES; one++)
        children[one] = spawn(waits, NULL);
    say("mapped");
    RESULT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGES * PAGE));
    for (int one = 0; one < PROCESSES; one++) {
        kill(children[one], SIGKILL);
        reap(children[one]);
    }
    return unused != NULL;
}

int main(void)
{
    char before[32];
    scratch();
    put_file("file", "", 0666);
    /* Where a watchdog looks at processors, it is to be quick about it. */
    int watched = get_file(PATIENCE, before, sizeof before) > 0;
    if (watched)
        set_patience("2\n");
    show_status("the attack", as_nobody(attack, NULL));
    if (watched)
        set_patience(before);
    return 0;
}
