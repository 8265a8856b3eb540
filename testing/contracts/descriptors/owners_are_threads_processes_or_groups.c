/*
 * fcntl(2): F_SETOWN_EX names a thread, a process or a group; F_GETOWN_EX and F_GETOWN say which, and 0 once it is
 * gone. A full queue of real-time signals takes a plain SIGIO instead.
 */
#include "../contract.h"
#include <sys/resource.h>

static int ends[2], reached[2];
static pid_t thread_id;
static sigset_t both;

static long set_owner(int type, pid_t pid)
{
    struct f_owner_ex owner = { type, pid };
    return fcntl(ends[0], F_SETOWN_EX, &owner);
}

static const char *whom(pid_t pid)
{
    return pid == 0 ? "none" : pid == getpid() ? "us" : pid == thread_id ? "the thread" : pid == getppid() ? "parent"
        : "another";
}

static void show_owner(void)
{
    struct f_owner_ex owner = { 77, 77 };
    need(fcntl(ends[0], F_GETOWN_EX, &owner) == 0);
    pid_t plain = syscall(SYS_fcntl, ends[0], F_GETOWN, 0);
    if (plain == -1)
        plain = -errno;
    say("type %d, %s; F_GETOWN %s%s", owner.type, whom(owner.pid), plain < 0 ? "group of " : "", whom(abs(plain)));
}

static void fire(void) { need(write(ends[1], "x", 1) == 1); }

static const char *got(void)
{
    siginfo_t info;
    struct timespec none = { 0, 0 };
    int signal = sigtimedwait(&both, &info, &none);
    return signal_name(signal == -1 ? 0 : signal);
}

static int taken(void) { return !strcmp(got(), "SIGIO"); }

static void *waits(void *pipes)
{
    int *go = pipes;
    char byte;
    thread_id = syscall(SYS_gettid);
    need(write(reached[1], "x", 1) == 1);
    while (read(go[0], &byte, 1) == 1) {
        byte = taken();
        need(write(reached[1], &byte, 1) == 1);
    }
    return NULL;
}

static int thread_takes(int *go)
{
    char byte = 0;
    need(write(go[1], "x", 1) == 1 && read(reached[0], &byte, 1) == 1);
    return byte;
}

static int ends_soon(void *unused) { (void)unused; return 0; }

static int overflows(void *unused)
{
    (void)unused;
    struct rlimit few = { 0, 0 };
    need(set_owner(1, getpid()) == 0 && setrlimit(RLIMIT_SIGPENDING, &few) == 0);
    RESULT(fcntl(ends[0], F_SETSIG, SIGRTMIN));
    fire();
    show_text("got", got());
    show_text("got", got());
    RESULT(fcntl(ends[0], F_SETSIG, SIGUSR1));
    fire();
    show_text("got", got());
    show_text("got", got());
    return 0;
}

int main(void)
{
    int go[2];
    char byte;
    pthread_t other;
    sigemptyset(&both);
    sigaddset(&both, SIGIO);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &both, NULL);
    need(pipe(ends) == 0 && pipe(reached) == 0 && pipe(go) == 0);
    section("arguments");
    show_owner();
    RESULT(fcntl(ends[0], F_SETOWN_EX, BAD_POINTER));
    RESULT(fcntl(ends[0], F_GETOWN_EX, BAD_POINTER));
    RESULT(set_owner(3, getpid()));
    RESULT(set_owner(-1, 0));
    RESULT(set_owner(1, 9999999));
    RESULT(set_owner(1, -getpid()));
    RESULT(set_owner(1, INT_MIN));
    RESULT(fcntl(99, F_SETOWN_EX, BAD_POINTER));
    int path = open("/tmp", O_PATH);
    RESULT(fcntl(path, F_SETOWN_EX, BAD_POINTER));
    RESULT(set_owner(2, 0));
    show_owner();
    RESULT(fcntl(ends[0], F_SETOWN, 0));
    show_owner();
    need(fcntl(ends[0], F_SETFL, O_ASYNC) == 0);

    section("a thread");
    need(pthread_create(&other, NULL, waits, go) == 0 && read(reached[0], &byte, 1) == 1);
    RESULT(set_owner(0, thread_id));
    show_owner();
    fire();
    show("main takes it", taken());
    show("the thread takes it", thread_takes(go));
    RESULT(set_owner(0, getpid()));
    show_owner();
    fire();
    show("the thread takes it", thread_takes(go));
    show("main takes it", taken());

    section("a process, by a thread");
    RESULT(set_owner(1, thread_id));
    show_owner();
    fire();
    show("main takes it", taken());
    RESULT(fcntl(ends[0], F_SETOWN, thread_id));
    show_owner();
    RESULT(set_owner(2, thread_id));
    show_owner();
    fire();
    show("main takes it", taken());

    section("a process");
    RESULT(set_owner(1, getpid()));
    show_owner();
    fire();
    show("the thread takes it", thread_takes(go));
    RESULT(set_owner(0, thread_id));
    close(go[1]);
    pthread_join(other, NULL);
    sleep_ms(20);
    show_owner();

    section("a group");
    RESULT(set_owner(2, getpgrp()));
    show_owner();
    fire();
    show("main takes it", taken());
    RESULT(fcntl(ends[0], F_SETOWN, -getpgrp()));
    show_owner();

    section("a child that ends");
    pid_t child = spawn(ends_soon, NULL);
    siginfo_t info;
    need(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    RESULT(set_owner(1, child));
    show_owner();
    reap(child);
    show_owner();
    RESULT(set_owner(1, child));

    section("a full queue");
    in_child(overflows, NULL);
    return 0;
}
