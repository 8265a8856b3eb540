/* getrlimit(2): soft may not pass hard, only root raises hard, children inherit, and the limits act. */
#include "../contract.h"
#include <sys/resource.h>

static int user(void *unused)
{
    (void)unused;
    struct rlimit limit;
    need(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    say("inherited %lld %lld", (long long)limit.rlim_cur, (long long)limit.rlim_max);
    need(setuid(1000) == 0);
    limit.rlim_max = 200;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max = 60;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_max = 61;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    return 0;
}

static int too_big(void *unused)
{
    (void)unused;
    struct rlimit limit = { 10, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
    int fd = open("file", O_WRONLY | O_CREAT, 0600);
    signal(SIGXFSZ, SIG_IGN);
    need(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int part = write(fd, "0123456789abc", 13);
    int more = write(fd, "x", 1) == -1 ? errno : 0;
    int longer = ftruncate(fd, 11) == -1 ? errno : 0;
    need(setrlimit(RLIMIT_FSIZE, &none) == 0); /* Printing to a file is limited too. */
    say("first write %d, then %s, growing %s", part, errno_name(more), errno_name(longer));
    need(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    signal(SIGXFSZ, SIG_DFL);
    return write(fd, "x", 1) == 1;
}

int main(void)
{
    scratch();
    struct rlimit limit = { 64, 128 }, old;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    RESULT(prlimit(0, RLIMIT_NOFILE, NULL, &old));
    say("soft %lld hard %lld", (long long)old.rlim_cur, (long long)old.rlim_max);
    OUTCOME(dup2(1, 63));
    OUTCOME(dup2(1, 64));
    struct rlimit wrong = { 10, 5 };
    RESULT(setrlimit(RLIMIT_NOFILE, &wrong));
    RESULT(getrlimit(99, &old));
    RESULT(getrlimit(RLIMIT_NOFILE, BAD_POINTER));
    show_status("user", in_child(user, NULL));
    show_status("file size", in_child(too_big, NULL));
    return 0;
}
