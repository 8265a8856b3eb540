/* flock(2), fcntl(2): many processes wait for locks of one file. When locks go, readers get theirs together, as do
 * writers of different bytes; writers of one byte follow each other; readers get in when a write lock becomes a read
 * lock, and writers wait on. A waiter that is killed just when the lock goes takes no wake-up with it. */
#include "../contract.h"
#include <sys/file.h>

enum { READERS = 24, WRITERS = 24, SECONDS = 20 };

struct shared {
    int waiting, holding, readers, writers, most_readers, overlaps, served;
};
static struct shared *shared;

static void add(int *counter, int by) { __atomic_add_fetch(counter, by, __ATOMIC_SEQ_CST); }
static int get(int *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }

/* Whether the counter comes to `least` in time. */
static int comes_to(int *counter, int least)
{
    for (long long begin = elapsed_ms(); get(counter) < least; sleep_ms(1))
        if (elapsed_ms() - begin > SECONDS * 1000)
            return 0;
    return 1;
}

static int range(int fd, int command, int kind, int first, int length)
{
    struct flock lock = { .l_type = kind, .l_whence = SEEK_SET, .l_start = first, .l_len = length };
    return fcntl(fd, command, &lock);
}

static int by_flock(int fd, int kind, int wait)
{
    return flock(fd, (kind == F_WRLCK ? LOCK_EX : kind == F_RDLCK ? LOCK_SH : LOCK_UN) | (wait ? 0 : LOCK_NB));
}
static int by_process(int fd, int kind, int wait) { return range(fd, wait ? F_SETLKW : F_SETLK, kind, 0, 0); }
static int by_description(int fd, int kind, int wait)
{
    return range(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, kind, 0, 0);
}
static int (*set)(int fd, int kind, int wait);

/* Starts a process that waits for a lock. */
static pid_t start(int (*body)(void *), void *argument)
{
    int before = get(&shared->waiting);
    pid_t pid = spawn(body, argument);
    need(comes_to(&shared->waiting, before + 1));
    return pid;
}

/* Holds its read lock until all readers hold theirs. */
static int read_together(void *unused)
{
    (void)unused;
    int fd = open("file", O_RDWR);
    add(&shared->waiting, 1);
    need(set(fd, F_RDLCK, 1) == 0);
    add(&shared->holding, 1);
    int together = comes_to(&shared->holding, READERS);
    return together ? 0 : 1;
}

/* Reads or writes for a moment; counts what should not be. */
static int read_or_write(void *kind)
{
    int fd = open("file", O_RDWR), writes = kind != NULL;
    add(&shared->waiting, 1);
    need(set(fd, writes ? F_WRLCK : F_RDLCK, 1) == 0);
    add(writes ? &shared->writers : &shared->readers, 1);
    if (get(&shared->writers) > 1 || (get(&shared->writers) == 1 && get(&shared->readers) > 0))
        add(&shared->overlaps, 1);
    usleep(1000);
    add(writes ? &shared->writers : &shared->readers, -1);
    add(&shared->served, 1);
    need(set(fd, F_UNLCK, 0) == 0);
    return 0;
}

static int write_byte(void *byte)
{
    int fd = open("file", O_RDWR);
    add(&shared->waiting, 1);
    need(range(fd, set == by_process ? F_SETLKW : F_OFD_SETLKW, F_WRLCK, (int)(long)byte, 1) == 0);
    add(&shared->holding, 1);
    return comes_to(&shared->holding, WRITERS) ? 0 : 1;
}

static void begin(const char *title)
{
    section(title);
    memset(shared, 0, sizeof *shared);
}

static int failures(pid_t *pids, int count)
{
    int failed = 0;
    for (int i = 0; i < count; i++)
        failed += reap(pids[i]) != 0;
    return failed;
}

static void with_this_kind(const char *name)
{
    pid_t pids[READERS + WRITERS];
    say("-- %s", name);
    int fd = open("file", O_RDWR);
    begin("readers get the lock together");
    need(set(fd, F_WRLCK, 1) == 0);
    for (int i = 0; i < READERS; i++)
        pids[i] = start(read_together, NULL);
    sleep_ms(50);
    show("hold it before", get(&shared->holding));
    need(set(fd, F_UNLCK, 0) == 0);
    show("readers that were left alone", failures(pids, READERS));

    begin("readers and writers are all served");
    need(set(fd, F_WRLCK, 1) == 0);
    for (int i = 0; i < READERS + WRITERS; i++)
        pids[i] = start(read_or_write, (void *)(long)(i % 2));
    need(set(fd, F_UNLCK, 0) == 0);
    show("failures", failures(pids, READERS + WRITERS));
    show("served", shared->served);
    show("overlaps", shared->overlaps);

    begin("a weaker lock lets readers in, and writers wait");
    need(set(fd, F_WRLCK, 1) == 0);
    pid_t writer = start(read_or_write, (void *)1);
    for (int i = 0; i < READERS; i++)
        pids[i] = start(read_together, NULL);
    sleep_ms(50);
    need(set(fd, F_RDLCK, 1) == 0);
    show("readers that were left alone", failures(pids, READERS));
    show("served", get(&shared->served));
    need(set(fd, F_UNLCK, 0) == 0);
    show("the writer failed", failures(&writer, 1));

    begin("waiters that are killed as the lock goes");
    int lost = 0;
    for (int round = 0; round < 40; round++) {
        shared->served = 0;
        need(set(fd, F_WRLCK, 1) == 0);
        pid_t victim = start(read_or_write, (void *)1), next = start(read_or_write, (void *)(long)(round % 2));
        usleep(500 * (round % 4));
        if (round % 3 == 0)
            kill(victim, SIGKILL);
        need(set(fd, F_UNLCK, 0) == 0);
        if (round % 3 == 1)
            kill(victim, SIGKILL);
        lost += failures(&next, 1);
        kill(victim, SIGKILL);
        reap(victim);
        shared->writers = shared->readers = 0;
    }
    show("waiters behind them that were forgotten", lost);
    close(fd);
}

static void by_bytes(const char *name)
{
    pid_t pids[WRITERS];
    say("-- %s", name);
    int fd = open("file", O_RDWR);
    begin("writers of different bytes get them together");
    need(set(fd, F_WRLCK, 1) == 0);
    for (long i = 0; i < WRITERS; i++)
        pids[i] = start(write_byte, (void *)i);
    sleep_ms(50);
    need(set(fd, F_UNLCK, 0) == 0);
    show("writers that were left alone", failures(pids, WRITERS));
    close(fd);
}

int main(void)
{
    scratch();
    put_file("file", "", 0600);
    shared = shared_page();
    set = by_flock;
    with_this_kind("flock");
    set = by_process;
    with_this_kind("locks of processes");
    by_bytes("bytes of processes");
    set = by_description;
    with_this_kind("locks of descriptions");
    by_bytes("bytes of descriptions");
    return 0;
}
