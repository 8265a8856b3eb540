/* prctl(2): when a parent exits its children move to the nearest subreaper, or to init without one. */
#include "../contract.h"
#include <sys/prctl.h>

static int grandchild(void *pipe_end)
{
    char byte;
    need(read(*(int *)pipe_end, &byte, 1) == 0);
    return 9;
}

static int middle(void *ends)
{
    pid_t child = spawn(grandchild, ends);
    return child == -1;
}

static int orphan(void *shared)
{
    for (int i = 0; i < 200 && getppid() == ((volatile int *)shared)[1]; i++)
        sleep_ms(5);
    ((volatile int *)shared)[0] = getppid() == 1;
    return 0;
}

static int parent_of_orphan(void *shared)
{
    ((int *)shared)[1] = getpid();
    spawn(orphan, shared);
    return 0;
}

int main(void)
{
    int ends[2], status, flag = -1;
    volatile int *shared = shared_page();
    section("without a subreaper");
    in_child(parent_of_orphan, (void *)shared);
    sleep_ms(300);
    show("adopted by init", shared[0]);
    section("with a subreaper");
    RESULT(prctl(PR_SET_CHILD_SUBREAPER, 1));
    need(prctl(PR_GET_CHILD_SUBREAPER, &flag) == 0);
    show("flag", flag);
    need(pipe(ends) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0);
    pid_t child = fork();
    need(child != -1);
    if (child == 0) {
        close(ends[1]);
        _exit(middle(ends));
    }
    show_status("middle", reap(child));
    RESULT(waitpid(-1, &status, WNOHANG));
    close(ends[1]);
    show("adopted one", waitpid(-1, &status, 0) > 0);
    show_status("grandchild", status);
    return 0;
}
