/*
 * munmap(2), mmap(2), madvise(2), brk(2), execve(2), _exit(2), ftruncate(2): an ordinary user changes very much memory
 * with one call. A thread of higher priority runs meanwhile on the same processor.
 * contract: timeout=60
 */
#include "parts.h"
#include <sys/prctl.h>

#define SIZE (160UL << 20)
#define ATTEMPTS 4

static void begin(void)
{
    sleep_ms(2);
    notes->turns = 0;
    notes->changing = 1;
}

static void end(void) { notes->changing = 0; }

static char *populated(void)
{
    char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    need(at != MAP_FAILED);
    return at;
}

static void unmap(void)
{
    char *at = populated();
    begin();
    need(munmap(at, SIZE) == 0);
    end();
}

static void map_over(void)
{
    char *at = populated();
    begin();
    need(mmap(at, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    end();
    need(at[0] == 0 && at[SIZE - 1] == 0);
}

static void discard(void)
{
    char *at = populated();
    begin();
    need(madvise(at, SIZE, MADV_DONTNEED) == 0);
    end();
}

static void move_break(void)
{
    char *from = (char *)syscall(SYS_brk, 0), *to = from + SIZE;
    need((char *)syscall(SYS_brk, to) == to);
    for (char *at = from; at < to; at += PAGE)
        *at = 1;
    begin();
    need((char *)syscall(SYS_brk, from) == from);
    end();
}

static void leave(void)
{
    populated();
    begin();
    _exit(0);
}

static void execute(void)
{
    populated();
    begin();
    execl("/proc/self/exe", "self", "executed", NULL);
}

static void cut(void)
{
    int fd = memfd_create("cut", 0);
    need(fd != -1 && ftruncate(fd, SIZE) == 0);
    char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    need(at != MAP_FAILED);
    for (char *page = at; page < at + SIZE; page += PAGE)
        *page = 1;
    begin();
    need(ftruncate(fd, 0) == 0);
    end();
}

static int attempt(void *change)
{
    stay_on_the_first_processor();
    need(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    ((void (*)(void))change)();
    return 0;
}

/*
 * Whether the watcher ran in the middle of the change, not only before its beginning and after its end, in one of some
 * attempts. The end of a process and an execution have more before and after.
 */
static void judge(const char *what, void (*change)(void), int enough)
{
    int kept_running = 0;
    for (int number = 0; number < ATTEMPTS && !kept_running; number++) {
        need(as_nobody(attempt, change) == 0);
        end();
        kept_running = notes->turns >= enough;
    }
    say("%s: others %s", what, kept_running ? "run meanwhile" : "wait until it ends");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return argv[1][0] == 0;
    notes = shared_page();
    pid_t watcher = spawn(watch, NULL);
    while (!notes->ready)
        sleep_ms(1);
    judge("munmap", unmap, 5);
    judge("mmap over it", map_over, 5);
    judge("madvise", discard, 5);
    judge("brk", move_break, 5);
    judge("exit", leave, 14);
    judge("execve", execute, 14);
    judge("ftruncate", cut, 5);
    notes->stop = 1;
    show_status("the watcher", reap(watcher));
    return 0;
}
