/*
 * pthreads(7), clone(2): threads share pid, directory, descriptors, umask and rlimits but have their own tid and
 * mask.
 */
#include "../contract.h"

static void *thread(void *main_tid)
{
    say("pid shared %d, tid own %d", getpid() == *(int *)main_tid, syscall(SYS_gettid) != *(int *)main_tid);
    need(chdir("/proc") == 0);
    umask(077);
    close(90);
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    return "result";
}

int main(void)
{
    pthread_t id;
    int tid = syscall(SYS_gettid);
    char path[64];
    void *result;
    need(dup2(1, 90) == 90);
    need(pthread_create(&id, NULL, thread, &tid) == 0 && pthread_join(id, &result) == 0);
    show_text("joined with", result);
    show_text("directory", getcwd(path, sizeof path));
    say("umask %o", umask(022));
    RESULT(fcntl(90, F_GETFD));
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    show("mask stayed", sigismember(&set, SIGUSR1) == 0);
    show("the leader's tid is the pid", tid == getpid());
    return 0;
}
