/*
 * The driver: starts the workers, watches that each makes progress, ends them in time and prints one summary line.
 *
 * Called as `stress exit N` it only exits with N: the program that the fork worker execs.
 */
#include "stress.h"

#include <stdarg.h>
#include <sys/prctl.h>
#include <termios.h>

enum { MAX_COPIES = 16, PATIENCE_SECONDS = 30 };

static const struct kind {
    const char *name;
    void (*round)(struct worker *);
} kinds[] = {
    { "forks", round_forks },
    { "pipes", round_pipes },
    { "threads", round_threads },
    { "signals", round_signals },
    { "mappings", round_mappings },
    { "files", round_files },
    { "events", round_events },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

struct shared {
    volatile int stop, broken;
    struct worker workers[KINDS * MAX_COPIES];
};

void broken(struct worker *self, const char *format, ...)
{
    char text[400], line[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int length = snprintf(line, sizeof line, "BROKEN %s, round %ld: %s\n", self->kind, self->rounds, text);
    if (write(STDOUT_FILENO, line, length) != length)
        length = 0; /* The output is closed; the count below still tells. */
    __atomic_add_fetch(self->broken, 1, __ATOMIC_SEQ_CST);
    *self->stop = 1;
    _exit(1);
}

uint32_t below(struct worker *self, uint32_t limit)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return (uint32_t)((self->random >> 32) % limit);
}

pid_t start(struct worker *self, int (*body)(struct worker *, void *), void *argument)
{
    pid_t child = fork();
    must_hold(self, child != -1);
    if (child == 0)
        _exit(body(self, argument));
    return child;
}

int finish(struct worker *self, pid_t child)
{
    int status;
    pid_t got;
    while ((got = waitpid(child, &status, 0)) == -1 && errno == EINTR)
        ;
    must_hold(self, got == child);
    return status;
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* What programs could still get: a kernel may keep memory for its own next need as long as it would give it back. */
static long free_kib(void)
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

static int work(struct worker *self, void *kind)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* A driver that was killed leaves no hanging worker behind. */
    while (!*self->stop) {
        ((const struct kind *)kind)->round(self);
        self->rounds++;
    }
    return 0;
}

/* Waits for the time to pass or for the first broken invariant; a worker that stands still is one. */
static void watch(struct shared *shared, int count, long long end)
{
    long seen[KINDS * MAX_COPIES] = { 0 };
    long long moved[KINDS * MAX_COPIES];
    for (int i = 0; i < count; i++)
        moved[i] = now_ms();
    while (!shared->stop && now_ms() < end) {
        poll(NULL, 0, 100);
        for (int i = 0; i < count; i++) {
            struct worker *worker = &shared->workers[i];
            if (worker->operations + worker->rounds != seen[i]) {
                seen[i] = worker->operations + worker->rounds;
                moved[i] = now_ms();
            } else if (now_ms() - moved[i] > PATIENCE_SECONDS * 1000LL && !shared->stop) {
                printf("BROKEN %s, round %ld: no progress for %d s\n", worker->kind, worker->rounds, PATIENCE_SECONDS);
                shared->broken++;
                shared->stop = 1;
            }
        }
    }
    shared->stop = 1;
}

/* Collects the workers; one that does not end on its own within the patience is broken and killed with its group. */
static void collect(struct shared *shared, pid_t *pids, int count)
{
    long long limit = now_ms() + PATIENCE_SECONDS * 1000LL;
    for (int left = count; left > 0;) {
        int status;
        pid_t got = waitpid(-1, &status, WNOHANG);
        for (int i = 0; i < count; i++)
            if (got > 0 && pids[i] == got) {
                left--;
                kill(-got, SIGKILL);
                pids[i] = -1;
                if (status && !shared->broken) {
                    printf("BROKEN %s: ended with status %x\n", shared->workers[i].kind, status);
                    shared->broken++;
                }
            }
        if (got > 0)
            continue;
        poll(NULL, 0, 20);
        if (now_ms() > limit) {
            for (int i = 0; i < count; i++)
                if (pids[i] > 0) {
                    printf("BROKEN %s, round %ld: does not end\n", shared->workers[i].kind, shared->workers[i].rounds);
                    shared->broken++;
                    kill(-pids[i], SIGKILL);
                }
            limit = now_ms() + PATIENCE_SECONDS * 1000LL;
        }
    }
}

/* One round of everything, so that what a kernel makes once and keeps is there before memory is counted. */
static void warm_up(struct shared *shared)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct worker *worker = &shared->workers[0];
        worker->kind = kinds[kind].name;
        worker->random = 0x9e3779b97f4a7c15ULL;
        worker->stop = &shared->stop;
        worker->broken = &shared->broken;
        pid_t child = fork();
        if (child == 0) {
            setpgid(0, 0);
            kinds[kind].round(worker);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    memset(shared->workers, 0, sizeof shared->workers);
}

static void summary(struct shared *shared, int count, long seconds, unsigned long seed, long before)
{
    char text[400] = "";
    for (int kind = 0; kind < KINDS; kind++) {
        long operations = 0;
        for (int i = 0; i < count; i++)
            if (strcmp(shared->workers[i].kind, kinds[kind].name) == 0)
                operations += shared->workers[i].operations;
        snprintf(text + strlen(text), sizeof text - strlen(text), " %s %ld,", kinds[kind].name, operations);
    }
    printf("stress: %ld s, seed %lu, %d workers:%s free memory %+ld KiB, broken %d\n", seconds, seed, count, text,
           free_kib() - before, shared->broken);
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "exit") == 0)
        return atoi(arguments[2]);
    if (count < 3) {
        fprintf(stderr, "usage: stress SECONDS SEED [COPIES]\n");
        return 2;
    }
    long seconds = atol(arguments[1]);
    unsigned long seed = strtoul(arguments[2], NULL, 0);
    int copies = count > 3 ? atoi(arguments[3]) : 1, workers = 0;
    if (copies < 1 || copies > MAX_COPIES) {
        fprintf(stderr, "stress: COPIES is 1 to %d\n", MAX_COPIES);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("stress: mmap");
        return 2;
    }
    pid_t pids[KINDS * MAX_COPIES];
    warm_up(shared);
    long before = free_kib();
    for (int copy = 0; copy < copies; copy++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct worker *worker = &shared->workers[workers];
            worker->kind = kinds[kind].name;
            worker->random = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (uint64_t)(workers + 1) << 32;
            worker->stop = &shared->stop;
            worker->broken = &shared->broken;
            pids[workers++] = start(worker, work, (void *)&kinds[kind]);
        }
    watch(shared, workers, now_ms() + seconds * 1000LL);
    collect(shared, pids, workers);
    summary(shared, workers, seconds, seed, before);
    tcdrain(STDOUT_FILENO); /* The end of a session leader hangs up its terminal and drops what was not sent yet. */
    return shared->broken ? 1 : 0;
}
