/*
 * execve(2), getauxval(3), AT_SECURE: a set-user-ID program that is started without standard descriptors, with
 * strange limits, a pending alarm, blocked and ignored signals and a hostile environment sees AT_SECURE = 1,
 * and descriptors marked close-on-exec are closed.
 */
#include "security.h"
#include <sys/auxv.h>
#include <sys/resource.h>

static int report;

static void tells(const char *format, ...)
{
    char line[200];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    need(write(report, line, length) == length);
}

static int program(void)
{
    struct rlimit limit;
    struct sigaction action;
    sigset_t set;
    report = 9;
    int opened = open("/etc/passwd", O_RDONLY);
    tells("secure %lu, ids %d %d, auxv %lu %lu %lu %lu\n", getauxval(AT_SECURE), getuid(), geteuid(), getauxval(AT_UID),
        getauxval(AT_EUID), getauxval(AT_GID), getauxval(AT_EGID));
    tells("a file it opens gets a descriptor above 2: %d\n", opened > 2);
    for (int fd = 0; fd < 3; fd++)
        tells("descriptor %d: %s\n", fd, fcntl(fd, F_GETFD) == -1 ? errno_name(errno) : "open");
    tells("descriptor 8: %s\n", fcntl(8, F_GETFD) == -1 ? errno_name(errno) : "open");
    getrlimit(RLIMIT_FSIZE, &limit);
    tells("file size limit %ld\n", (long)limit.rlim_cur);
    getrlimit(RLIMIT_CORE, &limit);
    tells("core limit %ld, dumpable %d\n", (long)limit.rlim_cur, prctl(PR_GET_DUMPABLE));
    getrlimit(RLIMIT_STACK, &limit);
    tells("stack limit at most 8 MiB: %d\n", limit.rlim_cur <= 8 << 20);
    sigaction(SIGINT, NULL, &action);
    sigprocmask(SIG_BLOCK, NULL, &set);
    tells("SIGINT ignored %d, SIGTERM blocked %d, alarm %d\n", action.sa_handler == SIG_IGN,
        sigismember(&set, SIGTERM), alarm(0) > 0);
    sigaction(SIGUSR1, NULL, &action);
    tells("SIGUSR1 default %d, death signal none %d\n", action.sa_handler == SIG_DFL,
        prctl(PR_GET_PDEATHSIG, &opened) == 0 && opened == 0);
    tells("keeps capabilities %d, nice %d, umask %o\n", prctl(PR_GET_KEEPCAPS), getpriority(PRIO_PROCESS, 0), umask(0));
    return 0;
}

static void handler(int number) { (void)number; }

static int attempt(void *pipe)
{
    struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY }, none = { 4096, 4096 };
    sigset_t set;
    need(dup2(*(int *)pipe, 9) == 9 && dup2(9, 8) == 8 && fcntl(8, F_SETFD, FD_CLOEXEC) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    need(signal(SIGINT, SIG_IGN) != SIG_ERR && signal(SIGUSR1, handler) != SIG_ERR);
    need(setrlimit(RLIMIT_STACK, &unlimited) == 0 && setrlimit(RLIMIT_CORE, &unlimited) == 0);
    need(setrlimit(RLIMIT_FSIZE, &none) == 0 && setpriority(PRIO_PROCESS, 0, 5) == 0);
    need(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0);
    umask(0);
    alarm(1000);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    char *environment[] = { "LD_PRELOAD=./evil.so", "IFS=x", "PATH=.", NULL }, *arguments[] = { NULL };
    execve("set-id", arguments, environment);
    return 99;
}

int main(int count, char **arguments)
{
    char text[1024];
    int pipes[2];
    (void)arguments;
    if (geteuid() == 1000)
        return program();
    scratch();
    copy_self("set-id", 1000, 1000, 06755);
    need(count == 1 && pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        become_nobody();
        _exit(attempt(&pipes[1]));
    }
    close(pipes[1]);
    show_status("the program", reap(child));
    ssize_t got = read(pipes[0], text, sizeof text - 1);
    need(got > 0);
    text[got] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        say("%s", line);
    return 0;
}
