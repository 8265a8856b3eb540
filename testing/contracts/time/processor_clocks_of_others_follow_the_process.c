/*
 * clock_getcpuclockid(3), clock_getres(2), timer_create(2): any process's clock may be read and timed, a thread's only
 * inside its process. A clock ends with its process: neither its number's next owner nor anything else is timed then.
 */
#include "../contract.h"
#include <linux/sched.h>

#define OF_PROCESS(pid) ((clockid_t)(~(unsigned)(pid) << 3 | 2))
#define OF_THREAD(tid) ((clockid_t)(~(unsigned)(tid) << 3 | 6))

static int *cell;

static pid_t self(void) { return syscall(SYS_gettid); }

static void clocks(const char *who, clockid_t clock)
{
    struct timespec at = { 0, 1 };
    timer_t timer;
    say("%s: gettime %s", who, clock_gettime(clock, &at) ? errno_name(errno) : "ok");
    say("%s: getres %s", who, clock_getres(clock, &at) ? errno_name(errno) : "ok");
    struct sigevent none = { .sigev_notify = SIGEV_NONE };
    int made = syscall(SYS_timer_create, clock, &none, &timer);
    say("%s: timer_create %s", who, made ? errno_name(errno) : "ok");
    if (made == 0)
        need(syscall(SYS_timer_delete, (int)(long)timer) == 0);
    at = (struct timespec){ 0, 1 };
    int slept = syscall(SYS_clock_nanosleep, clock, TIMER_ABSTIME, &at, NULL);
    say("%s: clock_nanosleep %s", who, slept ? errno_name(errno) : "ok");
}

static void *second(void *unused)
{
    clocks("its own number as a thread's", OF_THREAD(self()));
    clocks("its own number as a process's", OF_PROCESS(self()));
    cell[1] = self();
    while (cell[1])
        sleep_ms(1);
    return unused;
}

static void inside(void)
{
    pthread_t thread;
    section("by a second thread");
    need(pthread_create(&thread, NULL, second, NULL) == 0);
    while (!cell[1])
        sleep_ms(1);
    section("by the first thread");
    clocks("the second thread", OF_THREAD(cell[1]));
    clocks("the second thread as a process", OF_PROCESS(cell[1]));
    clocks("number 0 as a thread", OF_THREAD(0));
    clocks("number 0 as a process", OF_PROCESS(0));
    clocks("no such thread", OF_THREAD(4100000));
    clocks("no such process", OF_PROCESS(4100000));
    clocks("a descriptor", (clockid_t)(~0u << 3 | 3));
    clocks("no kind of clock", (clockid_t)(~0u << 3 | 7));
    cell[1] = 0;
    pthread_join(thread, NULL);
}

static void *waits(void *unused)
{
    cell[1] = self();
    for (;;)
        pause();
    return unused;
}

static int stranger(void *unused)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, waits, NULL) == 0);
    volatile unsigned long work = 0;
    for (int i = 0; i < 3000000; i++)
        work += i;
    cell[0] = 1;
    for (;;)
        pause();
    return unused != NULL;
}

static void ring(int number) { cell[2] += number == SIGUSR1; }

static timer_t timer_on(clockid_t clock)
{
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    need(timer_create(clock, &event, &timer) == 0);
    return timer;
}

static void show_timer(const char *when, timer_t timer)
{
    struct itimerspec left = { { 7, 7 }, { 7, 7 } };
    int got = timer_gettime(timer, &left);
    say("%s: timer_gettime %s, %s left, interval %ld", when, got ? errno_name(errno) : "ok",
        left.it_value.tv_sec || left.it_value.tv_nsec ? "some" : "none", (long)left.it_interval.tv_sec);
}

static pid_t fork_with(pid_t number)
{
    struct clone_args arguments = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1,
    };
    return syscall(SYS_clone3, &arguments, sizeof arguments);
}

static void across(void)
{
    struct itimerspec far = { { 3, 0 }, { 1000, 0 } }, soon = { { 0, 0 }, { 0, 20000000 } };
    section("another process");
    cell[0] = cell[1] = 0;
    pid_t other = spawn(stranger, NULL);
    while (!cell[0] || !cell[1])
        sleep_ms(1);
    clocks("its process", OF_PROCESS(other));
    clocks("its first thread", OF_THREAD(other));
    clocks("its second thread", OF_THREAD(cell[1]));
    clocks("its second thread as a process", OF_PROCESS(cell[1]));
    timer_t timer = timer_on(OF_PROCESS(other)), short_timer = timer_on(OF_PROCESS(other));
    catch_signal(SIGUSR1, ring, 0);
    OUTCOME(timer_settime(timer, 0, &far, NULL));
    OUTCOME(timer_settime(short_timer, 0, &soon, NULL));
    show_timer("while it sleeps", timer);
    sleep_ms(100);
    show("signals while it sleeps", cell[2]);

    section("it ends");
    kill(other, SIGKILL);
    siginfo_t info;
    need(waitid(P_PID, other, &info, WEXITED | WNOWAIT) == 0);
    clocks("a zombie", OF_PROCESS(other));
    need(reap(other) >= 0);
    clocks("reaped", OF_PROCESS(other));
    show_timer("reaped", timer);
    OUTCOME(timer_settime(timer, 0, &far, NULL));

    section("another has its number");
    pid_t next = fork_with(other);
    if (next == 0) {
        volatile unsigned long work = 0;
        for (long long end = elapsed_ms() + 300; elapsed_ms() < end;)
            work++;
        _exit(0);
    }
    check(next == other, "a process got the number");
    clocks("the next", OF_PROCESS(other));
    show_timer("the next", timer);
    show_timer("the next, soon", short_timer);
    OUTCOME(timer_settime(timer, 0, &soon, NULL));
    while (waitpid(next, NULL, 0) == -1)
        need(errno == EINTR);
    show("signals in all", cell[2]);
    OUTCOME(timer_delete(timer));
}

int main(void)
{
    cell = shared_page();
    inside();
    across();
    return 0;
}
