/*
 * getrlimit(2), fork(2): RLIMIT_NPROC counts what runs for the caller's user, not what others run, and binds only the
 * unprivileged; RLIMIT_NOFILE is at most fs.nr_open, also for root.
 */
#include "../contract.h"
#include <sys/resource.h>

static int one_more(void *unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child == -1 ? errno : reap(child);
}

static int user(void *limit)
{
    struct rlimit processes = { *(rlim_t *)limit, *(rlim_t *)limit };
    need(setrlimit(RLIMIT_NPROC, &processes) == 0 && setgid(1234) == 0 && setuid(1234) == 0);
    int result = one_more(NULL);
    return result == EAGAIN ? 11 : result;
}

static int root(void *limit)
{
    struct rlimit processes = { *(rlim_t *)limit, *(rlim_t *)limit };
    need(setrlimit(RLIMIT_NPROC, &processes) == 0);
    return one_more(NULL);
}

int main(void)
{
    rlim_t one = 1, two = 2;
    show_status("a user's second, limit 1", in_child(user, &one));
    show_status("a user's second, limit 2", in_child(user, &two));
    show_status("root, limit 1", in_child(root, &one));
    struct rlimit many = { 64, 1ULL << 40 };
    RESULT(setrlimit(RLIMIT_NOFILE, &many));
    return 0;
}
