/*
 * Processes that the workers must not reach: root's, another user's, and one that only beats.
 *
 * Each takes a picture of itself at the start (memory of its own and of a file, descriptors, limits, priority, groups),
 * and compares it ten times a second. It takes no signal: each one that arrives is a finding.
 */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WATCHED = 3, BYTES = 64 * 1024, STARVED_MS = 15000 };
static const char *const names[WATCHED] = { "root", "checker", "heart" };

struct watch_board {
    volatile unsigned beats[WATCHED];
    volatile int told[WATCHED];
    char text[WATCHED][160];
};

/* What must stay. */
struct picture {
    struct rlimit limits[16];
    int priority, policy, group, session;
    uid_t ids[6];
    cpu_set_t cpus;
    ino_t files[3];
    off_t at;
    char name[16];
};

static struct watch_board *shared;
static uint8_t *memory, *mapped;
static int files[3];

static void take(struct picture *picture)
{
    memset(picture, 0, sizeof *picture);
    for (int i = 0; i < 16; i++)
        getrlimit(i, &picture->limits[i]);
    picture->priority = getpriority(PRIO_PROCESS, 0);
    picture->policy = sched_getscheduler(0);
    picture->group = getpgrp();
    picture->session = getsid(0);
    getresuid(&picture->ids[0], &picture->ids[1], &picture->ids[2]);
    getresgid(&picture->ids[3], &picture->ids[4], &picture->ids[5]);
    sched_getaffinity(0, sizeof picture->cpus, &picture->cpus);
    for (int i = 0; i < 3; i++) {
        struct stat about;
        picture->files[i] = fstat(files[i], &about) == 0 ? about.st_ino : 0;
    }
    picture->at = lseek(files[0], 0, SEEK_CUR);
    prctl(PR_GET_NAME, picture->name);
}

/* Registers of a program that makes no call for a while. */
static bool keeps_registers(void)
{
    uint64_t wrong = 0, one = 0x1122334455667788, two = 0x99aabbccddeeff00;
    __asm__ volatile("movq %[one], %%xmm3\n movq %[two], %%xmm11\n movq %[one], %%xmm15\n mov %[two], %%r12\n"
                     " mov %[one], %%r13\n mov $200000, %%ecx\n1: dec %%ecx\n jnz 1b\n"
                     " movq %%xmm3, %%rax\n xor %[one], %%rax\n or %%rax, %[wrong]\n"
                     " movq %%xmm11, %%rax\n xor %[two], %%rax\n or %%rax, %[wrong]\n"
                     " movq %%xmm15, %%rax\n xor %[one], %%rax\n or %%rax, %[wrong]\n"
                     " xor %[two], %%r12\n or %%r12, %[wrong]\n xor %[one], %%r13\n or %%r13, %[wrong]\n"
                     : [wrong] "+r"(wrong)
                     : [one] "r"(one), [two] "r"(two)
                     : "rax", "rcx", "r12", "r13", "xmm3", "xmm11", "xmm15", "cc");
    return wrong == 0;
}

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at * 7 + (at >> 8));
}

__attribute__((format(printf, 2, 3))) static void tell(int which, const char *format, ...)
{
    if (shared->told[which])
        return;
    va_list words;
    va_start(words, format);
    vsnprintf(shared->text[which], sizeof shared->text[which], format, words);
    va_end(words);
    shared->told[which] = 1;
}

static void look(int which, const struct picture *before)
{
    struct picture now;
    take(&now);
    if (memcmp(&now, before, sizeof now) != 0)
        tell(which, "limits, ids, priority, processors, groups, name or descriptors of %s changed", names[which]);
    for (size_t at = 16; at < BYTES; at++)
        if (memory[at] != pattern(at)) {
            tell(which, "memory of %s changed at %#zx from %#x to %#x", names[which], at, pattern(at), memory[at]);
            break;
        }
    for (size_t at = 0; at < PAGE; at++)
        if (mapped[at] != (at < PAGE / 2 ? pattern(at) : 0)) {
            tell(which, "private file memory of %s changed at %#zx", names[which], at);
            break;
        }
    if (!keeps_registers())
        tell(which, "registers of %s changed", names[which]);
}

static void prepare_memory(void)
{
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 16; at < BYTES; at++)
        memory[at] = pattern(at);
    memcpy(memory, secret, sizeof secret);
    files[0] = memfd_create("watched", 0);
    files[1] = open("/etc/passwd", O_RDONLY);
    files[2] = open("/", O_RDONLY | O_DIRECTORY);
    if (ftruncate(files[0], PAGE))
        perror("fuzz: watched");
    mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, files[0], 0);
    for (size_t at = 0; at < PAGE / 2; at++)
        mapped[at] = pattern(at);
}

__attribute__((noreturn)) static void stand(int which)
{
    static const uid_t users[WATCHED] = { 0, CHECKER_ID, HEART_ID };
    sigset_t all;
    struct picture before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd != -1 && write(fd, "-1000", 5) == 5)
        close(fd);
    setsid();
    prepare_memory();
    if (users[which] && (setgroups(0, NULL) || setresgid(users[which], users[which], users[which])
                         || setresuid(users[which], users[which], users[which])))
        tell(which, "%s cannot become what it is", names[which]);
    take(&before);
    for (;;) {
        static const struct timespec pause = { 0, 100000000 };
        siginfo_t info;
        int signal = sigtimedwait(&all, &info, &pause);
        if (signal > 0)
            tell(which, "%s got signal %d, code %d, from %d of user %d", names[which], signal, info.si_code,
                info.si_pid,
                 info.si_uid);
        if (strcmp(names[which], "heart") != 0)
            look(which, &before);
        shared->beats[which]++;
    }
}

struct watch_board *start_watched(int pids[4], const uint8_t token[16])
{
    (void)token;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pids[0] = getpid();
    for (int i = 0; i < WATCHED; i++) {
        pids[i + 1] = fork();
        if (pids[i + 1] == 0)
            stand(i);
    }
    return shared;
}

bool was_watched(int pid, int status)
{
    for (int i = 0; i < WATCHED; i++)
        if (watched_pids[i + 1] == pid) {
            finding("watched", "%s ended or stopped with status %#x", names[i], status);
            return true;
        }
    return false;
}

void look_after_watched(struct watch_board *watched, long long now)
{
    static unsigned seen[WATCHED];
    static long long moved[WATCHED];
    for (int i = 0; i < WATCHED; i++) {
        if (watched->told[i] == 1) {
            finding("watched", "%s", watched->text[i]);
            watched->told[i] = 2;
        }
        if (watched->beats[i] != seen[i] || !moved[i]) {
            seen[i] = watched->beats[i];
            moved[i] = now;
        } else if (now - moved[i] > STARVED_MS) {
            finding("starved", "%s was not seen for %lld ms", names[i], now - moved[i]);
            moved[i] = now;
        }
    }
}
