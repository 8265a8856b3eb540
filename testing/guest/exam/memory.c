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
