/*
 * The supervisor: runs programs in rounds, kills what does not end, and looks after what must stay as it is.
 *
 * `fuzz supervise SEED SECONDS PROGRAMS WORKERS [-CALL...] [NUMBER=STEPS...]`; with NUMBERs only those programs run,
 * again and again until PROGRAMS were started; no CALL is made. A round ends with every process of the worker's user
 * gone, with the files looked at and with a fresh folder. The console gets lines of a strict form:
 *
 *     FUZZ-AT NUMBER                           every eighth program that starts
 *     FUZZ-FINDING KIND running N,N: TEXT      what must not be
 *     FUZZ-CALL NAME MADE SUCCEEDED ERRNO,...  at the end
 *     FUZZ-DONE seed S programs P calls C milliseconds M lost K findings F
 */
#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUND = 32,               /* Programs. */
    WARM = 2,                 /* Rounds before memory is counted. */
    OVERRUN_MS = 4000,
    UNKILLABLE_MS = 15000,
    LOST_KIB = 8192,          /* Caches that stay are smaller. */
};

static struct board *board;
static struct slot slots[WORKERS];
static int workers, findings;

long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

long free_kib(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kib = -1;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

void finding(const char *kind, const char *format, ...)
{
    char text[300], running[120] = "";
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    for (int i = 0; i < workers; i++)
        if (slots[i].pid) {
            size_t used = strlen(running);
            snprintf(running + used, sizeof running - used, "%s%d", used ? "," : "", slots[i].number);
        }
    printf("FUZZ-FINDING %s running %s: %s\n", kind, *running ? running : "-", text);
    findings++;
}

static void where(const char *kind, int index)
{
    const struct place *place = &board->places[index];
    int row = place->call >= 0 && place->call < call_count ? place->call : 0;
    finding(kind, "program %d, last begun step %d:%d %s", slots[index].number, place->thread, place->step,
        calls[row].name);
}

static void judge_end(int index, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 40)
        finding("privilege", "program %d has ids or capabilities that it must not have", slots[index].number);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 41)
        finding("leak", "program %d has the secret in its memory", slots[index].number);
    slots[index].pid = 0;
}

static void reap(void)
{
    int status, pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (was_watched(pid, status))
            continue;
        for (int i = 0; i < workers; i++)
            if (slots[i].pid == pid && WIFSTOPPED(status))
                kill(pid, SIGKILL);
            else if (slots[i].pid == pid)
                judge_end(i, status);
    }
}

/* Number of workers that run. */
static int look_after_workers(long long now)
{
    int busy = 0;
    for (int i = 0; i < workers; i++) {
        struct slot *slot = &slots[i];
        if (!slot->pid)
            continue;
        busy++;
        if (now - slot->since > OVERRUN_MS && !slot->killed) {
            kill(slot->pid, SIGKILL);
            slot->killed = 1;
        } else if (now - slot->since > OVERRUN_MS + UNKILLABLE_MS && slot->killed == 1) {
            where("unkillable", i);
            slot->killed = 2;
        }
    }
    return busy;
}

static void print_counts(uint64_t *calls_made)
{
    for (int row = 0; row < call_count; row++) {
        const struct count *count = &board->counts[row];
        if (!count->made)
            continue;
        *calls_made += count->made;
        printf("FUZZ-CALL %s %lu %lu ", calls[row].name, (unsigned long)count->made, (unsigned long)count->succeeded);
        const char *between = "";
        for (int error = 1; error < 192; error++)
            if (count->errors[error / 64] >> error % 64 & 1) {
                printf("%s%d", between, error);
                between = ",";
            }
        printf("\n");
    }
}

struct run { uint64_t seed; long seconds; int programs, listed; char **list; };

static int next(struct run *run, int started, const char **spec)
{
    if (!run->listed) {
        *spec = "all";
        return started;
    }
    const char *word = run->list[started % run->listed];
    *spec = strchr(word, '=') ? strchr(word, '=') + 1 : "all";
    return atoi(word);
}

/* One round; the number of programs started in all. */
static int round_of(struct run *run, int started, long long end, struct watch_board *watched)
{
    int last = started + ROUND < run->programs ? started + ROUND : run->programs;
    long long told = now_ms(), now;
    while ((now = now_ms()) < end || look_after_workers(now)) {
        reap();
        int busy = look_after_workers(now);
        for (int i = 0; i < workers && now < end && started < last; i++)
            if (!slots[i].pid) {
                const char *spec;
                int number = next(run, started, &spec);
                if (started % 8 == 0)
                    printf("FUZZ-AT %d\n", number);
                started += start_worker(&slots[i], i, run->seed, number, spec);
                busy++;
            }
        look_after_watched(watched, now);
        if (now - told > 2000) {
            printf("FUZZ-BEAT %lld\n", now);
            told = now;
        }
        if (!busy && started == last)
            break;
        usleep(1000);
    }
    return started;
}

static void run_all(struct run *run, struct watch_board *watched)
{
    long long begun = now_ms(), end = begun + run->seconds * 1000LL;
    long before = 0, lost = 0;
    int started = 0;
    for (int round = 0; started < run->programs && now_ms() < end; round++) {
        started = round_of(run, started, end, watched);
        sweep();
        compare_fingerprints();
        fresh_folder();
        if (round == WARM)
            before = free_kib();
    }
    for (int patience = 20; before; patience--) {
        lost = before - free_kib();
        if (lost <= LOST_KIB || !patience)
            break;
        usleep(100000);
    }
    if (lost > LOST_KIB)
        finding("memory", "%ld KiB did not come back", lost);
    uint64_t made = 0;
    print_counts(&made);
    printf("FUZZ-DONE seed %lu programs %d calls %lu milliseconds %lld lost %ld findings %d\n",
        (unsigned long)run->seed,
           started, (unsigned long)made, now_ms() - begun, lost, findings);
}

static void make_board(void)
{
    board_fd = memfd_create("board", MFD_CLOEXEC);
    if (board_fd == -1 || ftruncate(board_fd, sizeof *board) == -1)
        perror("fuzz: board");
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, board_fd, 0);
}

int supervise(int count, char **words)
{
    if (count < 6 || getuid() != 0)
        return 2;
    struct run run = { strtoul(words[2], NULL, 0), atol(words[3]), atoi(words[4]), count - 6, words + 6 };
    for (; run.listed && run.list[0][0] == '-'; run.list++, run.listed--)
        snprintf(without + strlen(without), sizeof without - strlen(without), ",%s", run.list[0] + 1);
    workers = atoi(words[5]);
    workers = workers < 1 ? 1 : workers > WORKERS ? WORKERS : workers;
    setvbuf(stdout, NULL, _IOLBF, 0);
    make_board();
    if (board == MAP_FAILED)
        return 2;
    write_file("/proc/sys/user/max_user_namespaces", "0"); /* In one of its own a process has every capability. */
    chmod("/", 0755); /* Linux makes its first file system with mode 1777. */
    memory_limit = (unsigned long)free_kib() * 1024 / 4;
    syscall(SYS_getrandom, secret, sizeof secret, 0);
    fresh_folder();
    take_fingerprints();
    struct watch_board *watched = start_watched(watched_pids, secret);
    run_all(&run, watched);
    tcdrain(STDOUT_FILENO);
    return findings ? 1 : 0;
}
