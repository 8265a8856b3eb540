/* signal(7): each signal has its default: terminate, dump core, ignore or stop. */
#include "../contract.h"

static int die(void *number)
{
    setpgid(0, 0); /* A group whose parent is in the same session is not orphaned, so stop signals stop it. */
    raise(*(int *)number);
    return 0;
}

int main(void)
{
    for (int number = 1; number < 32; number++) {
        if (number == SIGKILL)
            continue;
        pid_t child = spawn(die, &number);
        int status;
        need(waitpid(child, &status, WUNTRACED) == child);
        show_status(signal_name(number), status);
        if (WIFSTOPPED(status)) {
            kill(child, SIGKILL);
            reap(child);
        }
    }
    int realtime[] = { 34, 50, 64 };
    for (int i = 0; i < 3; i++) {
        int status = in_child(die, &realtime[i]);
        say("%d: killed %d by itself %d", realtime[i], WIFSIGNALED(status), WTERMSIG(status) == realtime[i]);
    }
    return 0;
}
