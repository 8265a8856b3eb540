/*
 * /proc/stat (proc(5)): idle, user and system time of all processors grow with what they do and never fall, and the
 * number of processes made counts each fork once.
 */
#include "../contract.h"

#define ROUNDS 20

enum { USER, NICE, SYSTEM, IDLE, KINDS };

static long times[KINDS], before[KINDS], made;

static void look(void)
{
    static char text[65536];
    memcpy(before, times, sizeof times);
    need(get_file("/proc/stat", text, sizeof text) > 0);
    need(sscanf(text, "cpu %ld %ld %ld %ld", &times[USER], &times[NICE], &times[SYSTEM], &times[IDLE]) == KINDS);
    char *at = strstr(text, "\nprocesses ");
    need(at != NULL);
    made = atol(at + 11);
}

static long grown(int kind) { return times[kind] - before[kind]; }

/* Makes calls, or counts, for so long. */
static void busy(int calls, long long milliseconds)
{
    long long began = elapsed_ms();
    for (volatile unsigned long at = 0; elapsed_ms() - began < milliseconds;)
        for (int round = 0; round < 2000; round++)
            if (calls)
                syscall(SYS_getppid);
            else
                at++;
}

int main(void)
{
    look();
    sleep_ms(500);
    look();
    check(grown(IDLE) >= 40, "idle time grows while this sleeps");
    busy(1, 500);
    look();
    check(grown(SYSTEM) >= 5, "system time grows with calls");
    busy(0, 500);
    look();
    check(grown(USER) >= 25, "user time grows without any");
    check(grown(IDLE) >= 0, "idle time does not fall");

    long first = made;
    int fell = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        if (child == 0) {
            busy(round % 2, 10);
            _exit(0);
        }
        need(waitpid(child, NULL, 0) == child);
        look();
        fell += grown(USER) < 0 || grown(SYSTEM) < 0 || grown(IDLE) < 0;
    }
    show("readings after an end that fell", fell);
    check(made - first >= ROUNDS && made - first < ROUNDS + 20, "each fork counts once");
    return 0;
}
