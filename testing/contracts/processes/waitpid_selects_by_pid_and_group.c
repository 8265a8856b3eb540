/*
 * waitpid(2): a pid, 0, -1 or a negative group selects the children waited for; WNOHANG returns 0 while none is
 * ready.
 */
#include "../contract.h"

static int own_group(void *unused)
{
    (void)unused;
    setpgid(0, 0);
    pause();
    return 0;
}

static int same_group(void *code) { return *(int *)code; }

int main(void)
{
    int three = 3, status;
    pid_t apart = spawn(own_group, NULL);
    setpgid(apart, apart);
    RESULT(waitpid(0, &status, WNOHANG));
    RESULT(waitpid(-apart, &status, WNOHANG));
    pid_t near = spawn(same_group, &three);
    show("group 0 finds the near child", waitpid(0, &status, 0) == near);
    show_status("near", status);
    RESULT(waitpid(0, &status, WNOHANG));
    RESULT(waitpid(near, &status, 0));
    kill(apart, SIGTERM);
    show("its group finds the other", waitpid(-apart, &status, 0) == apart);
    show_status("apart", status);
    RESULT(waitpid(-1, &status, 0));
    return 0;
}
