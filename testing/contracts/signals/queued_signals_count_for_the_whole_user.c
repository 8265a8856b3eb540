/*
 * getrlimit(2), proc(5): RLIMIT_SIGPENDING counts what is queued for a real user, in all its processes together, timers
 * included; SigQ in /proc/PID/status tells the sum. Another user has a count of its own, and a signal counts for the
 * user it was sent to until it is taken.
 */
#include "contract.h"
#include <sys/resource.h>

static int *shared;

static void block_all(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static void become(uid_t uid) { need(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0); }

static void show_queue(const char *who)
{
    char text[4096], *at;
    need(get_file("/proc/self/status", text, sizeof text) > 0 && (at = strstr(text, "SigQ:\t")));
    say("%s SigQ %.*s", who, (int)strcspn(at + 6, "\n"), at + 6);
}

static int wait_for(int stage)
{
    for (int i = 0; i < 2000 && __atomic_load_n(&shared[0], __ATOMIC_SEQ_CST) < stage; i++)
        sleep_ms(1);
    return 0;
}

static void next(int stage) { __atomic_store_n(&shared[0], stage, __ATOMIC_SEQ_CST); }

/* Holds three signals until it is told to go on. */
static int holder(void *unused)
{
    (void)unused;
    union sigval value = { .sival_int = 1 };
    become(65521);
    for (int i = 0; i < 3; i++)
        need(sigqueue(getpid(), 40, value) == 0);
    show_queue("holder");
    next(1);
    wait_for(2);
    return 0;
}

static int neighbour(void *unused)
{
    (void)unused;
    union sigval value = { .sival_int = 1 };
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    int id;
    become(65521);
    RESULT(sigqueue(getpid(), 40, value));
    show_queue("neighbour");
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
    show_queue("neighbour");
    RESULT(sigqueue(getpid(), 40, value));
    RESULT(sigqueue(getpid(), SIGUSR1, value));
    RESULT(kill(getpid(), SIGUSR2));
    show_queue("neighbour");
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
    RESULT(kill(getpid(), 41));
    show_queue("neighbour");
    RESULT(syscall(SYS_timer_delete, 0));
    show_queue("neighbour");
    return 0;
}

static int stranger(void *unused)
{
    (void)unused;
    union sigval value = { .sival_int = 1 };
    become(65522);
    RESULT(sigqueue(getpid(), 40, value));
    show_queue("stranger");
    return 0;
}

/* What was counted for one user stays so when the process becomes another. */
static int changer(void *unused)
{
    (void)unused;
    union sigval value = { .sival_int = 1 };
    need(setresuid(65523, 65523, 0) == 0);
    need(sigqueue(getpid(), 40, value) == 0);
    show_queue("before");
    need(setresuid(-1, 0, -1) == 0 && setresuid(65524, 65524, 65524) == 0);
    show_queue("after");
    need(sigqueue(getpid(), 40, value) == 0);
    show_queue("after one more");
    sigset_t one;
    struct timespec now = { 0, 0 };
    sigemptyset(&one);
    sigaddset(&one, 40);
    need(sigtimedwait(&one, NULL, &now) == 40);
    show_queue("after the first was taken");
    need(sigtimedwait(&one, NULL, &now) == 40);
    show_queue("after both were taken");
    return 0;
}

int main(void)
{
    struct rlimit limit = { 5, 5 };
    union sigval value = { .sival_int = 1 };
    shared = shared_page();
    block_all();
    need(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
    pid_t first = spawn(holder, NULL);
    wait_for(1);
    show_status("neighbour", in_child(neighbour, NULL));
    show_status("stranger", in_child(stranger, NULL));
    section("sent by root");
    RESULT(sigqueue(first, 40, value));
    RESULT(sigqueue(first, 40, value));
    RESULT(sigqueue(first, 40, value));
    next(2);
    show_status("holder", reap(first));
    section("becoming another");
    show_status("changer", in_child(changer, NULL));
    return 0;
}
