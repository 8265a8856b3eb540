/* execve(2): a set-user-ID program runs with its owner's effective and saved ids, unless no_new_privs forbids it. */
#include "../contract.h"
#include <sys/auxv.h>
#include <sys/prctl.h>

static int run(void *no_new_privs)
{
    need(setgid(1000) == 0 && setuid(1000) == 0);
    if (no_new_privs)
        need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    char *const argv[] = { "program", "show", NULL };
    execv("./program", argv);
    return 99;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        uid_t real, effective, saved;
        need(getresuid(&real, &effective, &saved) == 0);
        say("real %d effective %d saved %d group %d secure %lu", (int)real, (int)effective, (int)saved, (int)getegid(),
            getauxval(AT_SECURE));
        return 0;
    }
    scratch();
    static char bytes[200000];
    int from = open("/proc/self/exe", O_RDONLY), to = open("program", O_WRONLY | O_CREAT, 0755);
    ssize_t got;
    while ((got = read(from, bytes, sizeof bytes)) > 0)
        need(write(to, bytes, got) == got);
    close(to);
    show_status("plain", in_child(run, NULL));
    need(chown("program", 2000, 3000) == 0 && chmod("program", 04755) == 0);
    show_status("set-user-ID", in_child(run, NULL));
    need(chmod("program", 06755) == 0);
    show_status("and set-group-ID", in_child(run, NULL));
    show_status("with no_new_privs", in_child(run, bytes));
    return 0;
}
