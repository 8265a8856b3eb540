/* vfork(2): the parent waits until the child exits or execs, and sees what the child wrote. */
#include "../contract.h"

int main(int count, char **arguments)
{
    if (count > 1)
        return 3;
    static volatile int value = 1;
    (void)arguments;
    pid_t child = vfork();
    if (child == 0) {
        sleep_ms(30);
        value = 2;
        _exit(4);
    }
    show("value the child left", value);
    show_status("child", reap(child));
    child = vfork();
    if (child == 0) {
        char *const argv[] = { "self", "again", NULL };
        value = 5;
        execve("/proc/self/exe", argv, NULL);
        _exit(98);
    }
    show("value before exec", value);
    show_status("child after exec", reap(child));
    return 0;
}
