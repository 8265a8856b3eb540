/* sh(1), POSIX 2.9.2: a pipeline connects each output to the next input and its status is the last command's. */
#include "../contract.h"

static void run(const char *command)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    int status = reap(child);
    say("[%s] status %d", command, WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
}

int main(void)
{
    scratch();
    run("echo one two three | tr ' ' '\\n' | sort -r | head -n 2");
    run("seq 1 1000 | wc -l");
    run("yes | head -n 3");
    run("false | true");
    run("true | false");
    run("seq 1 20000 | awk '{ s += $1 } END { print s }'");
    run("printf 'b\\na\\nc\\n' | sort | tr -d '\\n'; echo");
    run("echo text | cat | cat | cat | cat | cat | sed s/text/done/");
    run("exit 42");
    run("kill -TERM $$");
    run("no-such-command 2>/dev/null");
    return 0;
}
