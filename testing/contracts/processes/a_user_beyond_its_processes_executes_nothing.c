/*
 * execve(2) EAGAIN, setrlimit(2): who becomes a user that has more processes than RLIMIT_NPROC permits may do so, but
 * executes no program while there are as many; the number at the time of the change decides, and a fork forgets it.
 */
#include "contract.h"
#include <sys/resource.h>

static int sleeper(void *unused)
{
    (void)unused;
    need(setresuid(65481, 65481, 65481) == 0);
    sleep_ms(8000);
    return 0;
}

static void run(void)
{
    execl("/proc/self/exe", "self", "ran", NULL);
    say("exec: %s", errno_name(errno));
}

static void limit(rlim_t most)
{
    struct rlimit both = { most, most };
    need(setrlimit(RLIMIT_NPROC, &both) == 0);
}

static pid_t others[4];

static int with_limit(void *most)
{
    limit(*(int *)most);
    need(setresuid(65481, 65481, 65481) == 0);
    run();
    return 0;
}

static int changed_before(void *most)
{
    need(setresuid(65481, 65481, 0) == 0);
    limit(*(int *)most);
    run();
    return 0;
}

static int when_they_are_gone(void *most)
{
    limit(*(int *)most);
    need(setresuid(65481, 65481, 65481) == 0);
    run();
    for (int i = 1; i < 4; i++)
        kill(others[i], SIGKILL);
    sleep_ms(100);
    run();
    return 0;
}

static int other_user(void *most)
{
    limit(*(int *)most);
    need(setresuid(65482, 65482, 65482) == 0);
    run();
    return 0;
}

static int root(void *most)
{
    limit(*(int *)most);
    need(setresuid(0, 0, 0) == 0);
    run();
    return 0;
}

int main(int count, char **words)
{
    (void)words;
    if (count > 1)
        return 7;
    for (int i = 0; i < 4; i++)
        others[i] = spawn(sleeper, NULL);
    sleep_ms(100);
    for (int most = 0; most < 7; most++) {
        say("-- four processes, %d permitted", most);
        show_status("became the user", in_child(with_limit, &most));
    }
    int two = 2, none = 0;
    show_status("limited afterwards", in_child(changed_before, &two));
    show_status("another user", in_child(other_user, &none));
    show_status("root", in_child(root, &none));
    show_status("when three are gone", in_child(when_they_are_gone, &two));
    for (int i = 0; i < 4; i++)
        kill(others[i], SIGKILL), reap(others[i]);
    return 0;
}
