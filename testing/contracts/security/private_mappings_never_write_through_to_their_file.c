/*
 * mmap(2): what is written to a private mapping never reaches the file, also when another thread throws the private
 * copy away between the look at the page and the write (process_vm_writev(2), MADV_DONTNEED of madvise(2)).
 */
#include "security.h"

#define PAGES 16
#define PIECES 1024
#define LASTS 5000

static char *memory;
static volatile int stop;

static void *write_from_outside(void *unused)
{
    static char bytes[8] = "XXXXXXXX";
    struct iovec from[PIECES], to[PIECES];
    for (int at = 0; at < PIECES; at++) {
        from[at] = (struct iovec){ bytes, sizeof bytes };
        to[at] = (struct iovec){ memory + at % PAGES * PAGE, sizeof bytes };
    }
    while (!stop)
        process_vm_writev(getpid(), from, PIECES, to, PIECES, 0);
    return unused;
}

/* Wakes up in the middle of whatever the writers do. */
static void *throw_away(void *unused)
{
    struct timespec moment = { 0, 20000 };
    while (!stop) {
        nanosleep(&moment, NULL);
        need(madvise(memory, PAGES * PAGE, MADV_DONTNEED) == 0);
        for (int at = 0; at < PAGES; at++)
            (void)*(volatile char *)(memory + at * PAGE);
    }
    return unused;
}

static int attempt(void *unused)
{
    (void)unused;
    static char seen[PAGES * PAGE];
    int fd = open("file", O_RDONLY), changed = 0;
    pthread_t threads[6];
    need(fd != -1);
    OUTCOME(open("file", O_RDWR));
    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    need(memory != MAP_FAILED);
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        need(pthread_create(&threads[at], NULL, at < 2 ? write_from_outside : throw_away, NULL) == 0);
    for (long long started = elapsed_ms(); !changed && elapsed_ms() - started < LASTS; sleep_ms(50)) {
        need(pread(fd, seen, sizeof seen, 0) == sizeof seen);
        changed = memchr(seen, 'X', sizeof seen) != NULL;
    }
    stop = 1;
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        pthread_join(threads[at], NULL);
    show("the file changed", changed);
    return 0;
}

int main(void)
{
    static char text[PAGES * PAGE + 1];
    scratch();
    memset(text, 'a', PAGES * PAGE);
    put_file("file", text, 0644);
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
