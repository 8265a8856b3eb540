/*
 * fcntl(2), flock(2): EDEADLK is for a cycle of processes that wait for each other's record locks now. A waiter
 * whose lock was just released is in no cycle, even if it has not run yet; locks of open file descriptions and
 * flock(2) are not looked at, so their cycles end by a signal. Processes that share a descriptor table
 * (CLONE_FILES) are one owner.
 */
#include "contract.h"
#include <sys/file.h>

static int lock_byte(int fd, int command, int byte, int kind)
{
    struct flock lock = { .l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
    return fcntl(fd, command, &lock);
}

static void note(int number) { (void)number; }

/* To the parent, and to the child. */
static int up[2], down[2];

static void tell(int *pipe) { need(write(pipe[1], "x", 1) == 1); }
static void await(int *pipe)
{
    char byte;
    need(read(pipe[0], &byte, 1) == 1);
}

/* Holds byte 2, waits for byte 1, gives both up. */
static int swapper(void *rounds)
{
    int fd = open("records", O_RDWR);
    for (int i = 0; i < *(int *)rounds; i++) {
        await(down);
        need(lock_byte(fd, F_SETLKW, 2, F_WRLCK) == 0);
        tell(up);
        if (lock_byte(fd, F_SETLKW, 1, F_WRLCK) == -1)
            return 1;
        lock_byte(fd, F_SETLK, 2, F_UNLCK);
        lock_byte(fd, F_SETLK, 1, F_UNLCK);
    }
    return 0;
}

static void stale_waiters(void)
{
    section("a released lock leaves no edge behind");
    int rounds = 20, fd = open("records", O_RDWR), refused = 0;
    pid_t child = spawn(swapper, &rounds);
    for (int i = 0; i < rounds; i++) {
        need(lock_byte(fd, F_SETLKW, 1, F_WRLCK) == 0);
        tell(down);
        await(up);
        sleep_ms(5);
        /* The child is made runnable by the first call and has not run when the second looks. */
        lock_byte(fd, F_SETLK, 1, F_UNLCK);
        refused += lock_byte(fd, F_SETLKW, 2, F_WRLCK) == -1;
        lock_byte(fd, F_SETLK, 2, F_UNLCK);
    }
    show("refused", refused);
    show_status("child", reap(child));
    close(fd);
}

static int crossing_description(void *unused)
{
    (void)unused;
    int fd = open("ofd", O_RDWR);
    need(lock_byte(fd, F_OFD_SETLK, 2, F_WRLCK) == 0);
    tell(up);
    return lock_byte(fd, F_OFD_SETLKW, 1, F_WRLCK) == 0;
}

static int crossing_flock(void *unused)
{
    (void)unused;
    int one = open("one", O_RDWR), two = open("two", O_RDWR);
    need(flock(two, LOCK_EX) == 0);
    tell(up);
    return flock(one, LOCK_EX) == 0;
}

static void cross(const char *title, int (*body)(void *), int (*wait_for_child)(void))
{
    section(title);
    pid_t child = spawn(body, NULL);
    await(up);
    sleep_ms(100);
    struct itimerval soon = { .it_value = { .tv_usec = 300000 } };
    setitimer(ITIMER_REAL, &soon, NULL);
    RESULT(wait_for_child());
    kill(child, SIGKILL);
    show_status("child", reap(child));
}

static int own;
static int wait_for_description(void) { return lock_byte(own, F_OFD_SETLKW, 2, F_WRLCK); }
static int wait_for_flock(void) { return flock(own, LOCK_EX); }

static void shared_table(void)
{
    section("CLONE_FILES");
    int fd = open("records", O_RDWR);
    need(lock_byte(fd, F_SETLK, 5, F_WRLCK) == 0);
    pid_t child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        RESULT(lock_byte(fd, F_SETLK, 5, F_RDLCK));
        _exit(0);
    }
    show_status("child", reap(child));
    close(fd);
}

int main(void)
{
    scratch();
    put_file("records", "123456", 0600);
    put_file("ofd", "123456", 0600);
    put_file("one", "", 0600);
    put_file("two", "", 0600);
    need(pipe(up) == 0 && pipe(down) == 0);
    catch_signal(SIGALRM, note, 0);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    need(sched_setaffinity(0, sizeof first, &first) == 0);
    stale_waiters();
    own = open("ofd", O_RDWR);
    need(lock_byte(own, F_OFD_SETLK, 1, F_WRLCK) == 0);
    cross("descriptions", crossing_description, wait_for_description);
    int one = open("one", O_RDWR);
    need(flock(one, LOCK_EX) == 0);
    own = open("two", O_RDWR);
    cross("flock", crossing_flock, wait_for_flock);
    shared_table();
    return 0;
}
