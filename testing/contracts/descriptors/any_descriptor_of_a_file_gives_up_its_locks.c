/*
 * fcntl(2): a process that closes any descriptor of a file gives up its record locks on it, also through a description
 * that it locked nothing through; dup2, close_range, execve and the end of the process close too. Another process's
 * close leaves them.
 */
#include "../contract.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int change(int fd, int command, int kind)
{
    struct flock lock = { .l_type = kind, .l_whence = SEEK_SET, .l_len = 1 };
    return fcntl(fd, command, &lock);
}

static int looks(void *unused)
{
    (void)unused;
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    int fd = open("file", O_RDWR);
    need(fcntl(fd, F_GETLK, &lock) == 0);
    return lock.l_type != F_UNLCK;
}

static void locked(const char *after) { say("after %s: %s", after, in_child(looks, NULL) ? "locked" : "free"); }

static int opens_and_closes(void *unused)
{
    (void)unused;
    return close(open("file", O_RDWR));
}

static void *closes(void *unused)
{
    close(open("file", O_RDONLY));
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    if (count > 1) {
        need(chdir(arguments[1]) == 0);
        locked("execve");
        return 0;
    }
    scratch();
    put_file("file", "text", 0600);
    put_file("else", "text", 0600);
    int fd = open("file", O_RDWR);
    RESULT(change(fd, F_SETLK, F_WRLCK));
    locked("the lock");
    in_child(opens_and_closes, NULL);
    locked("a child's close");
    close(open("else", O_RDWR));
    locked("closing another file");
    close(open("file", O_RDONLY));
    locked("close");
    RESULT(change(fd, F_SETLK, F_WRLCK));
    close(open("file", O_PATH));
    locked("closing a path");
    RESULT(change(fd, F_SETLK, F_WRLCK));
    int other = open("file", O_RDONLY);
    need(dup2(open("else", O_RDONLY), other) == other);
    locked("dup2");
    RESULT(change(fd, F_SETLK, F_WRLCK));
    other = open("file", O_RDONLY);
    need(syscall(SYS_close_range, other, other, 0) == 0);
    locked("close_range");
    RESULT(change(fd, F_SETLK, F_WRLCK));
    need(pthread_create(&thread, NULL, closes, NULL) == 0);
    pthread_join(thread, NULL);
    locked("a thread's close");
    RESULT(change(fd, F_OFD_SETLK, F_WRLCK));
    close(open("file", O_RDONLY));
    locked("close, with a lock of the description");
    RESULT(change(fd, F_OFD_SETLK, F_UNLCK));
    RESULT(change(fd, F_SETLK, F_WRLCK));
    other = open("file", O_RDONLY | O_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        need(change(fd, F_SETLK, F_WRLCK) == -1);
        _exit(0);
    }
    reap(child);
    execl("/proc/self/exe", "self", scratch_path, NULL);
    return 1;
}
