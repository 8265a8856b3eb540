/*
 * Signals: queued values arrive completely and in order, stops and continuations pair up, timers interrupt arithmetic
 * without changing its result, and a fault handler on its own stack always comes back.
 */
#include "stress.h"

enum { VALUES_MAX = 60 };

static volatile int *received, expected_value, disorder;

static void take_value(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    if (info->si_value.sival_int != expected_value)
        disorder++;
    expected_value = info->si_value.sival_int + 1;
    (*received)++;
}

static int receive(struct worker *self, void *argument)
{
    struct sigaction action = { .sa_sigaction = take_value, .sa_flags = SA_SIGINFO };
    sigset_t set;
    int total = *(int *)argument;
    must_hold(self, sigaction(SIGRTMIN + 2, &action, NULL) == 0);
    expected_value = disorder = 0;
    sigemptyset(&set);
    __atomic_store_n(&received[1], 1, __ATOMIC_SEQ_CST);
    while (*received < total) {
        /* The signal is blocked (inherited) except inside sigsuspend, so none is lost between test and sleep. */
        sigsuspend(&set);
    }
    return disorder != 0;
}

static void queued_values(struct worker *self)
{
    int total = 1 + (int)below(self, VALUES_MAX);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    sigprocmask(SIG_BLOCK, &set, &old);
    received[0] = received[1] = 0;
    pid_t child = start(self, receive, &total);
    if (below(self, 2))
        while (!__atomic_load_n(&received[1], __ATOMIC_SEQ_CST))
            sched_yield();
    for (int i = 0; i < total; i++) {
        while (sigqueue(child, SIGRTMIN + 2, (union sigval){ .sival_int = i }) == -1) {
            must_hold(self, errno == EAGAIN);
            sched_yield();
        }
        self->operations++;
    }
    int status = finish(self, child);
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (status)
        broken(self, "receiver of %d values ended with %x after %d", total, status, *received);
}

static int idle(struct worker *self, void *unused)
{
    (void)self, (void)unused;
    for (;;)
        pause();
    return 0;
}

static void stops(struct worker *self)
{
    pid_t child = start(self, idle, NULL);
    int status;
    for (int i = (int)below(self, 6); i >= 0; i--) {
        must_hold(self, kill(child, SIGSTOP) == 0);
        must_hold(self, waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        must_hold(self, kill(child, SIGCONT) == 0);
        must_hold(self, waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
        self->operations += 2;
    }
    int number = below(self, 2) ? SIGKILL : SIGTERM;
    must_hold(self, kill(child, number) == 0);
    status = finish(self, child);
    must_hold(self, WIFSIGNALED(status) && WTERMSIG(status) == number);
}

static volatile long ticks;

static void tick(int number)
{
    (void)number;
    volatile double disturb = 1.0;
    for (int i = 0; i < 20; i++)
        disturb = disturb * 1.1 + 0.3;
    ticks++;
}

/* The same sum with and without a timer interrupting it. */
static double arithmetic(long steps)
{
    double sum = 0, factor = 1.0000001;
    for (long i = 1; i <= steps; i++) {
        factor *= 1.0000001;
        sum += factor / (double)i;
    }
    return sum;
}

static void interrupted_arithmetic(struct worker *self)
{
    struct sigaction action = { .sa_handler = tick };
    struct itimerval often = { { 0, 700 }, { 0, 700 } }, none = { { 0, 0 }, { 0, 0 } };
    long steps = 20000 + below(self, 20000);
    double quiet = arithmetic(steps);
    must_hold(self, sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    double disturbed = arithmetic(steps);
    must_hold(self, setitimer(ITIMER_REAL, &none, NULL) == 0);
    if (memcmp(&quiet, &disturbed, sizeof quiet))
        broken(self, "%ld steps gave %.17g, interrupted %.17g", steps, quiet, disturbed);
    self->operations++;
}

static sigjmp_buf back;
static void escape(int number) { siglongjmp(back, number); }

static void faults(struct worker *self)
{
    static char alternate[32768];
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    struct sigaction action = { .sa_handler = escape, .sa_flags = SA_ONSTACK };
    must_hold(self, sigaltstack(&stack, NULL) == 0);
    must_hold(self, sigaction(SIGSEGV, &action, NULL) == 0);
    char *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must_hold(self, hole != MAP_FAILED);
    for (volatile int i = (int)below(self, 20); i >= 0; i--) {
        int number = sigsetjmp(back, 1);
        if (number == 0) {
            *(volatile char *)(hole + i) = 1;
            broken(self, "a store to a forbidden page worked");
        }
        must_hold(self, number == SIGSEGV);
        self->operations++;
    }
    must_hold(self, munmap(hole, PAGE) == 0);
}

void round_signals(struct worker *self)
{
    if (!received) {
        received = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        must_hold(self, received != MAP_FAILED);
    }
    switch (below(self, 4)) {
    case 0: queued_values(self); break;
    case 1: stops(self); break;
    case 2: interrupted_arithmetic(self); break;
    default: faults(self); break;
    }
}
