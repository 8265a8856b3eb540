/* setpgid(2): once a child has called execve its parent may no longer move it (EACCES). */
#include "../contract.h"

int main(int count, char **arguments)
{
    (void)arguments;
    char byte = 'x';
    if (count > 1) {
        need(write(50, &byte, 1) == 1);
        pause();
        return 0;
    }
    int ends[2];
    need(pipe(ends) == 0 && dup2(ends[1], 50) == 50);
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = { "self", "child", NULL };
        execve("/proc/self/exe", argv, NULL);
        _exit(1);
    }
    need(read(ends[0], &byte, 1) == 1);
    RESULT(setpgid(child, child));
    kill(child, SIGKILL);
    show_status("child", reap(child));
    return 0;
}
