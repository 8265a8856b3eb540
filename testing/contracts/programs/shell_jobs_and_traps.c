/* sh(1): background jobs run beside the shell, wait collects their status, traps run on signals and at exit. */
#include "../contract.h"

static void run(const char *command)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    show_status("shell", reap(child));
}

int main(void)
{
    scratch();
    run("(exit 3) & wait $!; echo $?");
    run("exec 2>/dev/null; sleep 0.2 & kill $!; wait $!; echo $?");
    run("trap 'echo caught' USR1; kill -USR1 $$; echo after");
    run("trap 'echo leaving' EXIT; exit 5");
    run("trap '' TERM; kill $$; echo survived");
    run("for i in 1 2 3 4 5; do (echo $i > f$i) & done; wait; cat f1 f2 f3 f4 f5 | tr '\\n' ' '; echo");
    run("(sleep 0.1; echo late) & echo early; wait");
    run("x=$(echo inner; exit 7); echo \"$x $?\"");
    return 0;
}
