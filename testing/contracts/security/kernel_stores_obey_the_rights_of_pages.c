/*
 * mmap(2), mprotect(2): what the kernel stores for a program obeys the rights of the page. A file that was mapped
 * read-only is changed neither by results of calls nor by what happens at a thread's end, a signal or a futex
 * operation.
 */
#include "security.h"
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static char *target;
static void handler(int number) { _exit(number); }

struct robust { struct robust *next; long offset; struct robust *pending; };

static int ends(void *what)
{
    static struct robust head;
    switch ((long)what) {
    case 0:
        syscall(SYS_set_tid_address, target);
        break;
    case 1:
        /* A list whose one lock, without a holder, is the file's first word. */
        head = (struct robust){ .next = (void *)target, .offset = 0, .pending = NULL };
        syscall(SYS_set_robust_list, &head, sizeof head);
        break;
    case 2:
        return syscall(SYS_rseq, target, 32, 0, 0x53053053) == -1 ? errno == EFAULT ? 7 : 8 : 9;
    default: {
        stack_t stack = { .ss_sp = target, .ss_size = 2 * PAGE };
        struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
        sigaltstack(&stack, NULL);
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        return 1;
    }
    }
    _exit(0);
}

static int attempt(void *argument)
{
    int pipes[2], pair[2], fd = open("/dev/zero", O_RDONLY), file = open("roots", O_RDONLY);
    char *text = argument;
    struct iovec remote = { target, 64 }, local = { text, 64 };
    need(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && fd != -1 && file != -1);
    target = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, 0);
    remote.iov_base = target;
    need(target != MAP_FAILED && write(pipes[1], text, 64) == 64 && write(pair[1], text, 64) == 64);
    OUTCOME(mprotect(target, PAGE, PROT_READ | PROT_WRITE));
    OUTCOME(read(fd, target, 64));
    OUTCOME(read(pipes[0], target, 64));
    OUTCOME(recv(pair[0], target, 64, 0));
    OUTCOME(pread(file, target, 64, 0));
    OUTCOME(syscall(SYS_getrandom, target, 64, 0));
    OUTCOME(uname((void *)target));
    OUTCOME(sysinfo((void *)target));
    OUTCOME(getrusage(RUSAGE_SELF, (void *)target));
    OUTCOME(syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, target));
    OUTCOME(pipe((void *)target));
    OUTCOME(syscall(SYS_getcwd, target, 64));
    OUTCOME(prctl(PR_GET_NAME, target));
    OUTCOME(syscall(SYS_process_vm_writev, getpid(), &local, 1, &remote, 1, 0));
    OUTCOME(syscall(SYS_futex, target, FUTEX_WAKE_OP, 1, 1, target, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
    OUTCOME(syscall(SYS_futex, target, FUTEX_WAKE_OP, 1, 1, target + 64, FUTEX_OP(FUTEX_OP_ADD, 1, 0, 0)));
    OUTCOME(syscall(SYS_futex, target, FUTEX_TRYLOCK_PI, 0, NULL));
    OUTCOME(syscall(SYS_futex, target, FUTEX_LOCK_PI, 0, NULL));
    OUTCOME(syscall(SYS_futex, target, FUTEX_UNLOCK_PI, 0, NULL));
    OUTCOME(madvise(target, PAGE, MADV_REMOVE));
    OUTCOME(madvise(target, PAGE, MADV_POPULATE_WRITE));
    for (long what = 0; what < 4; what++)
        show_status("a child", in_child(ends, (void *)what));
    OUTCOME(fallocate(file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, PAGE));
    OUTCOME(ftruncate(file, 0));
    OUTCOME(syscall(SYS_copy_file_range, fd, NULL, file, NULL, 64, 0));
    OUTCOME(open("/proc/self/fd/0", O_WRONLY));
    return 0;
}

int main(void)
{
    static char text[2 * PAGE], now[2 * PAGE];
    scratch();
    int fd = open("roots", O_RDWR | O_CREAT, 0644);
    /* The first word is 0, a futex without an owner; the file is its own next link. */
    memset(text + 8, 'r', sizeof text - 8);
    need(write(fd, text, sizeof text) == (ssize_t)sizeof text);
    need(dup2(open("roots", O_RDONLY), 0) == 0);
    as_nobody(attempt, text);
    need(pread(fd, now, sizeof now, 0) == (ssize_t)sizeof now);
    check(memcmp(text, now, sizeof text) == 0, "root's file is as it was");
    return 0;
}
