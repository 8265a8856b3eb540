/*
 * kill(2), tgkill(2): the id of a thread that is not the first of its process names the process to kill; tkill and
 * tgkill name the thread, ids of 0 and below are EINVAL, a thread of another group is ESRCH, and signal 0 only
 * asks.
 */
#include "contract.h"

static volatile sig_atomic_t caught;
static volatile pid_t tid;
static pthread_barrier_t barrier;

static void note(int number) { caught = number; }

static void *thread(void *unused)
{
    tid = gettid();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void)
{
    catch_signal(SIGUSR1, note, SA_RESTART);
    pthread_t other;
    need(pthread_barrier_init(&barrier, NULL, 2) == 0 && pthread_create(&other, NULL, thread, NULL) == 0);
    pthread_barrier_wait(&barrier);
    check(tid != getpid(), "the thread has its own id");
    RESULT(kill(tid, 0));
    RESULT(kill(tid, SIGUSR1));
    for (int i = 0; i < 100 && !caught; i++)
        sleep_ms(5);
    show("caught", caught == SIGUSR1);
    section("tgkill");
    RESULT(syscall(SYS_tgkill, getpid(), tid, 0));
    RESULT(syscall(SYS_tgkill, tid, tid, 0));
    RESULT(syscall(SYS_tgkill, 1, tid, 0));
    RESULT(syscall(SYS_tgkill, 0, tid, 0));
    RESULT(syscall(SYS_tgkill, getpid(), 0, 0));
    RESULT(syscall(SYS_tgkill, -1, -1, 0));
    RESULT(syscall(SYS_tgkill, getpid(), tid, 65));
    RESULT(syscall(SYS_tgkill, getpid(), tid, -1));
    RESULT(syscall(SYS_tgkill, 0, tid, 65));
    section("tkill");
    RESULT(syscall(SYS_tkill, tid, 0));
    RESULT(syscall(SYS_tkill, 0, 0));
    RESULT(syscall(SYS_tkill, tid, 65));
    section("kill");
    RESULT(kill(getpid(), 65));
    RESULT(kill(getpid(), -1));
    RESULT(kill(0x3fffffff, 0));
    RESULT(kill(0x3fffffff, 65));
    RESULT(kill(INT_MIN, 0));
    section("calls that take a process do not take a thread");
    RESULT(getpgid(tid) == getpgid(0));
    RESULT(setpgid(tid, 0));
    RESULT(waitpid(tid, NULL, WNOHANG));
    pthread_barrier_wait(&barrier);
    pthread_join(other, NULL);
    sleep_ms(20);
    RESULT(kill(tid, 0));
    return 0;
}
