/*
 * contract: timeout=60
 * openat2(2), RESOLVE_BENEATH and RESOLVE_IN_ROOT: a path does not lead out of its directory, also while a component
 * of it is moved out of that directory; the walk fails with EAGAIN where it cannot tell.
 */
#include "security.h"
#include <linux/openat2.h>

#define ROUNDS 6000

static volatile int *over;

static int attacker(void *unused)
{
    become_nobody();
    while (!*over) {
        rename("jail/sub/moved", "outside/moved");
        rename("outside/moved", "jail/sub/moved");
    }
    return unused != NULL;
}

static int tries(int jail, unsigned long long resolve)
{
    struct open_how how = { .flags = O_RDONLY, .resolve = resolve };
    int escaped = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int fd = syscall(SYS_openat2, jail, "sub/moved/a/b/../../../secret", &how, sizeof how);
        if (fd != -1)
            escaped++;
        close(fd);
    }
    return escaped;
}

int main(void)
{
    scratch();
    over = shared_page();
    need(mkdir("jail", 0755) == 0 && mkdir("jail/sub", 0755) == 0 && mkdir("jail/sub/moved", 0755) == 0);
    need(mkdir("jail/sub/moved/a", 0755) == 0 && mkdir("jail/sub/moved/a/b", 0755) == 0 && mkdir("outside", 0755) == 0);
    for (const char **at = (const char *[]){ "jail/sub", "jail/sub/moved", "outside", NULL }; *at; at++)
        need(chown(*at, NOBODY, NOBODY) == 0);
    put_file("outside/secret", "root's", 0600);
    int jail = open("jail", O_PATH | O_DIRECTORY);
    pid_t attacking = spawn(attacker, NULL);
    show("secrets opened beneath", tries(jail, RESOLVE_BENEATH));
    show("secrets opened in the root", tries(jail, RESOLVE_IN_ROOT));
    *over = 1;
    show_status("the attacker", reap(attacking));
    return 0;
}
