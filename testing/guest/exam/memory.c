/* Programs that use their memory: constants, code made at run time, data that must be private, files read again. */
#include "exam.h"

sigjmp_buf exam_back;
volatile sig_atomic_t exam_watched;

static void caught(int signal) {
    if (!exam_watched) {
        /* Not ours: let it kill. */
        struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(signal, &usual, 0);
        return;
    }
    exam_watched = 0;
    siglongjmp(exam_back, 1);
}

void exam_watch(void) {
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGBUS, &action, 0);
}

static const char constant[PAGE] = "this never changes";

/* Constants cannot be written. */
void constants(void) {
    exam_watch();
    volatile char *first = (volatile char *)(uintptr_t)constant;
    if (SURVIVES(*first = 'T')) puts("a constant was written");
}

/* Code is made at run time beside data, as a just-in-time compiler does. */
void jit(void) {
    /* mov eax, 42; ret */
    static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
    char *both = mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) exit(2);
    memset(both, 1, 64 * PAGE);
    memcpy(both, code, sizeof code);
    if (mprotect(both, PAGE, PROT_READ | PROT_EXEC) != 0) exit(2);
    int (*made)(void) = (int (*)(void))(uintptr_t)both;
    if (made() != 42) puts("the code that was made does not run");
}

/* More pages than the part of the file that is read at once; kept in the file, not zeros. */
static char table[16 * PAGE] = {1};

/* A program's initialised data is its own: it begins in each process as the file has it. */
static void load(int rounds) {
    for (int round = 0; round < rounds; round++) {
        pid_t child = fork();
        if (child == 0) {
            if (table[0] != 1) puts("initialised data is not what the program file has");
            for (int page = 0; page < 16; page++) table[page * PAGE + 8] = (char)(round + 1);
            char *argv[] = {"exam-child", 0};
            char *envp[] = {0};
            execve("/bin/busybox-true", argv, envp);
            execve("/bin/true", argv, envp);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
}

/* A program is started once, and its memory is torn down. */
void once(void) { load(1); }

/* Programs are started again and again. */
void reload(void) {
    load(3);
    table[8] = 7;
    for (int page = 0; page < 16; page++) table[page * PAGE + 8] = 9;
}

/* Bytes of a large page. */
enum { LARGE = 2 << 20 };

/* A large allocation, filled and given back in part. */
void huge(void) {
    char *room = mmap(0, 3 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) exit(2);
    char *first = (char *)(((uintptr_t)room + LARGE - 1) & ~(uintptr_t)(LARGE - 1));
    for (int page = 0; page < 2 * LARGE / PAGE; page++) first[page * PAGE] = (char)page;
    if (munmap(first + LARGE, PAGE) != 0) exit(2);
    for (int page = 0; page < 2 * LARGE / PAGE; page++)
        if (page != LARGE / PAGE && first[page * PAGE] != (char)page) puts("a large allocation changed");
}

/* How many pages the pool of large ones gets of those that are asked for. */
static int resize_pool(const char *count) {
    char text[16] = "";
    int fd = open("/proc/sys/vm/nr_hugepages", O_RDWR);
    if (fd == -1 || write(fd, count, strlen(count)) == -1 || pread(fd, text, sizeof text - 1, 0) == -1) exit(2);
    close(fd);
    return atoi(text);
}

/* Most of the memory is used in small pages and given back: then there is room for large ones. */
void pieces(void) {
    size_t length = 64u << 20;
    char *room = mmap(0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || madvise(room, length, MADV_NOHUGEPAGE) != 0) exit(2);
    for (size_t at = 0; at < length; at += PAGE) room[at] = 1;
    if (munmap(room, length) != 0) exit(2);
    if (resize_pool("16") < 16) puts("no room for large pages");
    resize_pool("0");
}

/* One letter of it is another one in the second edition of the program. */
static volatile const char edition[] = "the edition of this program is: 1";

/* The program that `renew` starts: it is the edition that was asked for, or the kernel is to be looked at. */
int renewed(const char *wanted) {
    if (edition[sizeof edition - 2] != *wanted) ask_for_dump();
    return 0;
}

/* Runs the program at `path`. */
static void run_renewed(const char *path, const char *wanted) {
    pid_t child = fork();
    if (child == 0) {
        execl(path, "exam", "--renewed", wanted, (char *)0);
        _exit(4);
    }
    waitpid(child, 0, 0);
}

/* Programs with much memory that they do not use are run again and again, and a small one. */
void runs(void) {
    for (int round = 0; round < 60; round++) {
        run_renewed("/proc/self/exe", "1");
        load(1);
    }
}

/* Writes a program file again, from the first byte on. */
static void write_program(const char *path, const char *bytes, size_t length) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (fd == -1 || write(fd, bytes, length) != (ssize_t)length || close(fd) != 0) exit(2);
}

/* A program is run, replaced in its file by the next edition, and run again. */
void renew(void) {
    static const char path[] = "/tmp/renewed";
    static char program[512 * PAGE];
    int self = open("/proc/self/exe", O_RDONLY);
    ssize_t length = read(self, program, sizeof program);
    if (length <= 0 || length == (ssize_t)sizeof program) exit(2);
    close(self);
    write_program(path, program, (size_t)length);
    for (int round = 0; round < 3; round++) run_renewed(path, "1");
    char text[sizeof edition];
    for (size_t at = 0; at < sizeof text; at++) text[at] = edition[at];
    char *found = memmem(program, (size_t)length, text, sizeof text);
    if (!found) exit(2);
    found[sizeof text - 2] = '2';
    write_program(path, program, (size_t)length);
    run_renewed(path, "2");
    unlink(path);
}
