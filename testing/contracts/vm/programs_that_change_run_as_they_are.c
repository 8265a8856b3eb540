/*
 * execve(2), fexecve(3): a program runs as its file is at that moment, however it came to be so (written, punched,
 * mapped and stored to, renamed over), and its zeros are zeros; what another process writes into one that runs
 * (process_vm_writev(2)) stays in that process. Files are exchanged while others execute them.
 * contract: timeout=60
 */
#include "../contract.h"
#include <linux/falloc.h>

#define ROUNDS 6
#define LASTS 3000
#define MIXED 3
#define NOT_ZERO 4
#define NOT_RUN 5

/* The edition, in each kind of segment. */
static volatile const char in_text[] = "the edition in constants: 1";
static volatile char in_data[] = "the edition in data: 1";
static volatile char zeros[3 * PAGE];
static char program[1 << 20];
static size_t length;
static char *places[2];

static int edition(void)
{
    char text = in_text[sizeof in_text - 2], data = in_data[sizeof in_data - 2];
    for (size_t at = 0; at < sizeof zeros; at++)
        if (zeros[at])
            return NOT_ZERO;
    for (size_t at = 0; at < sizeof zeros; at += 512)
        zeros[at] = 1;
    in_data[0] = 'T';
    return text == data ? text - '0' : MIXED;
}

/* How the file behind a descriptor, or else `path`, runs. */
static int run(int fd, const char *path)
{
    char *argv[] = { "program", "run", NULL }, *envp[] = { NULL };
    pid_t child = fork();
    if (child == 0) {
        if (fd != -1)
            fexecve(fd, argv, envp);
        else
            execve(path, argv, envp);
        _exit(NOT_RUN);
    }
    int status = reap(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void set_edition(int number)
{
    for (int at = 0; at < 2; at++)
        *places[at] = '0' + number;
}

static void load_self(void)
{
    static char text[2][sizeof in_text];
    int fd = open("/proc/self/exe", O_RDONLY);
    ssize_t got = read(fd, program, sizeof program);
    need(got > 0 && (size_t)got < sizeof program);
    length = got;
    close(fd);
    for (size_t at = 0; at < sizeof in_text; at++)
        text[0][at] = in_text[at];
    for (size_t at = 0; at < sizeof in_data; at++)
        text[1][at] = in_data[at];
    places[0] = memmem(program, length, text[0], sizeof in_text);
    places[1] = memmem(program, length, text[1], sizeof in_data);
    need(places[0] && places[1]);
    for (int at = 0; at < 2; at++)
        places[at] += (at ? sizeof in_data : sizeof in_text) - 2;
}

static int opened(const char *path, int flags)
{
    int fd;
    /* As long as one that runs it is not gone. */
    while ((fd = open(path, flags | O_CLOEXEC, 0755)) == -1 && errno == ETXTBSY)
        sched_yield();
    need(fd != -1);
    return fd;
}

static void by_truncation(const char *path)
{
    int fd = opened(path, O_WRONLY | O_CREAT | O_TRUNC);
    need(write(fd, program, length) == (ssize_t)length);
    close(fd);
}

static void in_place(const char *path)
{
    int fd = opened(path, O_WRONLY);
    for (int at = 0; at < 2; at++)
        need(pwrite(fd, places[at], 1, places[at] - program) == 1);
    close(fd);
}

static void by_holes(const char *path)
{
    int fd = opened(path, O_WRONLY);
    need(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, length) == 0);
    need(pwrite(fd, program, length, 0) == (ssize_t)length);
    close(fd);
}

static void by_mapping(const char *path)
{
    int fd = opened(path, O_RDWR);
    char *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(bytes != MAP_FAILED);
    for (int at = 0; at < 2; at++)
        bytes[places[at] - program] = *places[at];
    need(munmap(bytes, length) == 0);
    close(fd);
}

static void by_cutting(const char *path)
{
    int fd = opened(path, O_WRONLY);
    size_t cut = (places[0] < places[1] ? places[0] : places[1]) - program;
    need(ftruncate(fd, cut) == 0 && pwrite(fd, program + cut, length - cut, cut) == (ssize_t)(length - cut));
    close(fd);
}

static void by_name(const char *path)
{
    by_truncation("next");
    need(rename("next", path) == 0);
}

static void change(const char *what, void (*how)(const char *), const char *path, int fd)
{
    int wrong = 0, last = 0;
    for (int round = 0; round < ROUNDS; round++) {
        set_edition(1 + round % 2);
        how(path);
        for (int again = 0; again < 3; again++)
            if ((last = run(fd, path)) != 1 + round % 2)
                wrong++;
    }
    say("%s: %d runs of another edition%s", what, wrong, wrong && last > 2 ? ", or worse" : "");
}

/* Changes the file all the time. */
static pid_t changing(void (*how)(const char *))
{
    pid_t child = fork();
    need(child != -1);
    for (int round = 0; child == 0; round++) {
        set_edition(1 + round % 2);
        how("program");
    }
    return child;
}

/* Runs it meanwhile: each run is one edition, or there is none. */
static int runs(void *unused)
{
    int bad = 0;
    for (long long started = elapsed_ms(); elapsed_ms() - started < LASTS;) {
        int how = run(-1, "program");
        bad += how != 1 && how != 2 && how != NOT_RUN;
    }
    (void)unused;
    return bad > 99 ? 99 : bad;
}

static void race(const char *what, void (*how)(const char *))
{
    /* The one before may have been ended in the middle of a change. */
    by_name("program");
    pid_t changer = changing(how), runners[3];
    for (int at = 0; at < 3; at++)
        runners[at] = spawn(runs, NULL);
    int bad = 0;
    for (int at = 0; at < 3; at++)
        bad += WEXITSTATUS(reap(runners[at]));
    kill(changer, SIGKILL);
    reap(changer);
    show(what, bad);
}

/* Writes into one that runs, as far as that is allowed, and looks at its file and at the next one. */
static void from_outside(void)
{
    static char now[sizeof program];
    static volatile char *const targets[] = { (char *)in_text, in_data, zeros };
    int ready[2], reached = 0;
    char mark = '7', first;
    set_edition(1);
    by_name("program");
    need(run(-1, "program") == 1 && run(-1, "program") == 1 && pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ready[1], STDOUT_FILENO);
        execl("program", "program", "wait", NULL);
        _exit(NOT_RUN);
    }
    need(read(ready[0], &first, 1) == 1);
    for (size_t target = 0; target < COUNT_OF(targets); target++)
        for (int page = 0; page < 2; page++) {
            struct iovec from = { &mark, 1 }, to = { (char *)targets[target] + page * PAGE, 1 };
            reached += process_vm_writev(child, &from, 1, &to, 1, 0) == 1;
        }
    check(reached >= 3, "some of it was written");
    int fd = open("program", O_RDONLY);
    check(read(fd, now, sizeof now) == (ssize_t)length && memcmp(now, program, length) == 0, "the file is as it was");
    close(fd);
    show("the next one runs as", run(-1, "program"));
    kill(child, SIGKILL);
    reap(child);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        need(write(STDOUT_FILENO, "!", 1) == 1);
        for (;;)
            pause();
    }
    if (argc > 1)
        return edition();
    scratch();
    load_self();
    by_truncation("program");
    change("cut to nothing and written", by_truncation, "program", -1);
    change("written in place", in_place, "program", -1);
    change("punched and written", by_holes, "program", -1);
    change("mapped and stored to", by_mapping, "program", -1);
    change("cut before its data and written", by_cutting, "program", -1);
    change("renamed over", by_name, "program", -1);
    section("memory that is executed");
    int writable = memfd_create("program", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", writable);
    need(write(writable, program, length) == (ssize_t)length);
    int readable = open(path, O_RDONLY | O_CLOEXEC);
    need(readable != -1);
    show("while it can be written it runs as", run(readable, NULL));
    close(writable);
    snprintf(path, sizeof path, "/proc/self/fd/%d", readable);
    change("written in place", in_place, path, readable);
    change("punched and written", by_holes, path, readable);
    change("mapped and stored to", by_mapping, path, readable);
    section("changed while it is run, wrong runs");
    race("cut to nothing and written", by_truncation);
    race("renamed over", by_name);
    race("punched and written", by_holes);
    section("written to while it runs");
    from_outside();
    return 0;
}
