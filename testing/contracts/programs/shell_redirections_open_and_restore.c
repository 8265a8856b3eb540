/* sh(1), POSIX 2.7: redirections truncate, append, duplicate and nest, and here-documents feed input. */
#include "../contract.h"

static void run(const char *command)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    int status = reap(child);
    say("status %d", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
}

int main(void)
{
    scratch();
    run("echo first > file; echo second >> file; cat file");
    run("echo replaced > file; cat < file");
    run("{ echo out; echo error >&2; } 2> errors > outs; cat outs errors");
    run("cat <<END | tr a-z A-Z\nhere is\ntext\nEND\n");
    run("exec 3> three; echo to three >&3; exec 3>&-; cat three; echo x >&3 2>/dev/null");
    run("set -C; echo x > file");
    run("read a b < file; echo \"[$a][$b]\"");
    run("for i in 1 2 3; do echo $i; done > list; wc -c < list");
    run("cat absent 2>/dev/null || echo missing");
    return 0;
}
