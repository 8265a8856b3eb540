/*
 * fcntl(2), F_SETOWN: a file's owner and the ids it is signalled with are set as one. Of a user and root who name
 * owners of one file at the same time, neither lends the other what he has: the user's target gets no signal with
 * root's ids.
 * contract: timeout=40
 */
#include "security.h"

static int ends[2];
static pid_t victim;

static void names_victim(void)
{
    for (;;)
        fcntl(ends[0], F_SETOWN, victim);
}

static void blocks(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static int has_pending(pid_t pid)
{
    char path[32], text[4096];
    unsigned long long pending = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    need(get_file(path, text, sizeof text) > 0 && strstr(text, "ShdPnd:"));
    need(sscanf(strstr(text, "ShdPnd:"), "ShdPnd: %llx", &pending) == 1);
    return pending >> (SIGIO - 1) & 1;
}

static int user(void *unused)
{
    (void)unused;
    become_nobody();
    names_victim();
    return 0;
}

int main(void)
{
    char bytes[4096];
    signal(SIGIO, SIG_IGN);
    need(pipe2(ends, O_NONBLOCK) == 0 && fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
    victim = start_victim(blocks);
    need(fcntl(ends[0], F_SETOWN, getpid()) == 0);
    pid_t other = spawn(user, NULL);
    long long begin = elapsed_ms();
    int reached = 0;
    while (elapsed_ms() - begin < 3000 && !reached) {
        for (int i = 0; i < 200; i++) {
            need(fcntl(ends[0], F_SETOWN, getpid()) == 0);
            (void)!write(ends[1], "x", 1);
        }
        while (read(ends[0], bytes, sizeof bytes) > 0)
            ;
        reached = has_pending(victim);
    }
    show("the user's target was told", reached);
    end_victim("user", other);
    end_victim("victim", victim);
    return 0;
}
