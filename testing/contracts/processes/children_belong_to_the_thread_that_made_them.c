/*
 * wait(2), prctl(2): __WNOTHREAD finds only children of the calling thread. When the thread ends, its children become
 * another thread's, and those that asked for it (PR_SET_PDEATHSIG) get their signal although the process goes on.
 */
#include "contract.h"
#include <sys/prctl.h>
#ifndef __WNOTHREAD
#define __WNOTHREAD 0x20000000
#endif

static pid_t child, sibling;
static int go[2], asked[2];

static pid_t ended(void)
{
    pid_t pid = fork();
    need(pid != -1);
    if (pid == 0)
        _exit(0);
    siginfo_t info;
    need(waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0);
    return pid;
}

static void ask(const char *who, pid_t pid, int options)
{
    int status;
    pid_t got = waitpid(pid, &status, options | WNOHANG);
    const char *found = got == pid ? "found" : "found another";
    say("%s: %s", who, got > 0 ? found : got == 0 ? "not yet" : errno_name(errno));
}

static void by_id(const char *who, pid_t pid, int options)
{
    siginfo_t info = { 0 };
    int result = waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | options);
    say("%s: %s", who, result ? errno_name(errno) : info.si_pid == pid ? "found" : "not yet");
}

static void *maker(void *unused)
{
    (void)unused;
    char byte;
    child = ended();
    need(write(go[1], "1", 1) == 1);
    need(read(asked[0], &byte, 1) == 1);
    by_id("the thread that made it", child, __WNOTHREAD);
    return NULL;
}

static void *maker_of_sibling(void *unused)
{
    (void)unused;
    sibling = syscall(SYS_clone, SIGCHLD | CLONE_PARENT, 0, 0, 0, 0);
    need(sibling != -1);
    if (sibling == 0)
        _exit(0);
    return NULL;
}

/* Its child is a child of the thread that made this process. */
static int clones_a_sibling(void *place)
{
    maker_of_sibling(NULL);
    *(pid_t *)place = sibling;
    return 0;
}

static void *maker_of_one_that_asks(void *unused)
{
    (void)unused;
    char byte;
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
        need(write(go[1], "1", 1) == 1);
        sleep_ms(3000);
        _exit(7);
    }
    need(read(go[0], &byte, 1) == 1);
    return NULL;
}

static void *waiter(void *unused)
{
    (void)unused;
    ask("any child of another thread", -1, __WNOTHREAD);
    ask("its own group", 0, __WNOTHREAD);
    by_id("the other thread's child", child, __WNOTHREAD);
    by_id("without the flag", child, 0);
    return NULL;
}

int main(void)
{
    pthread_t thread, other;
    char byte;
    need(pipe(go) == 0 && pipe(asked) == 0);
    section("a child of another thread");
    need(pthread_create(&thread, NULL, maker, NULL) == 0 && read(go[0], &byte, 1) == 1);
    by_id("main", child, __WNOTHREAD);
    by_id("main with all kinds", child, __WNOTHREAD | __WALL);
    need(pthread_create(&other, NULL, waiter, NULL) == 0 && pthread_join(other, NULL) == 0);
    need(write(asked[1], "1", 1) == 1 && pthread_join(thread, NULL) == 0);
    /* The thread may be ending still when it is joined. */
    sleep_ms(50);
    section("after that thread has ended");
    by_id("main", child, __WNOTHREAD);
    ask("main", child, __WNOTHREAD);
    ask("main once more", child, __WNOTHREAD);
    section("a child of the calling thread");
    child = ended();
    need(pthread_create(&other, NULL, waiter, NULL) == 0 && pthread_join(other, NULL) == 0);
    ask("main", child, __WNOTHREAD);
    section("a sibling belongs to the thread that made its sibling");
    pid_t *place = shared_page();
    show_status("the first", in_child(clones_a_sibling, place));
    sleep_ms(50);
    child = *place;
    need(pthread_create(&other, NULL, waiter, NULL) == 0 && pthread_join(other, NULL) == 0);
    ask("main", child, __WNOTHREAD);
    section("the end of a thread is told to its children");
    need(pthread_create(&thread, NULL, maker_of_one_that_asks, NULL) == 0 && pthread_join(thread, NULL) == 0);
    show_status("the child", reap(child));
    return 0;
}
