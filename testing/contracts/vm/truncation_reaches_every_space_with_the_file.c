/*
 * truncate(2), mmap(2): pages beyond the new end are gone from every address space that has the file mapped: those that
 * inherited a mapping through several forks, private copies included, and those that made one later; also after many
 * other spaces with the file have come and gone.
 */
#include "../contract.h"
#include <setjmp.h>

static sigjmp_buf back;
static void note(int number) { siglongjmp(back, number); }

static const char *probe(volatile char *where)
{
    int number = sigsetjmp(back, 1);
    if (number)
        return signal_name(number);
    return *where == 0 ? "zero" : "still there";
}

static int fd;
static int ready[2];
static int cut[3][2];

/* Touches what the kind of mapping says, waits for the cut, and reports. */
static void live(const char *who, char *shared, char *private, int number)
{
    char *own = number == 2 ? mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0) : shared;
    char sum = shared[PAGE] + own[PAGE];
    private[PAGE] = sum;
    char byte = 0;
    need(write(ready[1], &byte, 1) == 1);
    need(read(cut[number][0], &byte, 1) == 1);
    say("%s: shared %s, private copy %s, own %s", who, probe(shared + PAGE), probe(private + PAGE), probe(own + PAGE));
    need(write(ready[1], &byte, 1) == 1);
    _exit(0);
}

int main(void)
{
    catch_signal(SIGSEGV, note, 0);
    catch_signal(SIGBUS, note, 0);
    scratch();
    fd = open("file", O_RDWR | O_CREAT, 0600);
    need(ftruncate(fd, 2 * PAGE) == 0 && pwrite(fd, "x", 1, PAGE) == 1);
    need(pipe(ready) == 0 && pipe(cut[0]) == 0 && pipe(cut[1]) == 0 && pipe(cut[2]) == 0);
    char *shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *private = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    need(shared[PAGE] == 'x' && private[PAGE] == 'x');
    section("spaces that come and go");
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(shared[PAGE] == 'x' ? 0 : 1);
        int status;
        need(waitpid(child, &status, 0) == child && status == 0);
    }
    section("spaces that stay");
    const char *who[] = { "child", "grandchild", "child that maps again" };
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            if (i == 1 && fork() != 0)
                _exit(0);
            live(who[i], shared, private, i);
        }
    }
    char byte;
    for (int i = 0; i < 3; i++)
        need(read(ready[0], &byte, 1) == 1);
    need(ftruncate(fd, PAGE) == 0);
    say("parent: shared %s, private %s", probe(shared + PAGE), probe(private + PAGE));
    for (int i = 0; i < 3; i++) {
        need(write(cut[i][1], &byte, 1) == 1);
        need(read(ready[0], &byte, 1) == 1);
    }
    return 0;
}
