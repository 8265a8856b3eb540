/*
 * Offsets, lengths and counts at the ends of their types are refused or cut (read(2), mmap(2), fallocate(2), …): no
 * sum of two of them wraps to something that passes a check.
 */
#include "security.h"
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define MAX 0x7fffffffffffffffLL
#define TOP 0x7ffffffff000UL

static int file, other;
static char *memory;

static void offsets(void)
{
    off_t at = MAX, end = MAX - 2;
    struct iovec piece = { memory, 16 };
    RESULT(pread(file, memory, 16, MAX));
    RESULT(pread(file, memory, 16, -1));
    RESULT(pwrite(file, memory, 16, -1));
    RESULT(preadv(file, &piece, 1, MAX));
    RESULT(syscall(SYS_pwritev, file, &piece, 1, -1L, -1L));
    RESULT(lseek(file, MAX, SEEK_SET) == MAX);
    RESULT(read(file, memory, 16));
    OUTCOME(write(file, memory, 16));
    OUTCOME(lseek(file, 1, SEEK_CUR));
    OUTCOME(lseek(file, MAX, SEEK_END));
    OUTCOME(lseek(file, -MAX - 1, SEEK_CUR));
    OUTCOME(lseek(file, MAX, SEEK_DATA));
    RESULT(lseek(file, 0, SEEK_SET));
    OUTCOME(fallocate(file, 0, MAX, MAX));
    OUTCOME(fallocate(file, 0, MAX, 1));
    OUTCOME(fallocate(file, 0, 0, MAX));
    OUTCOME(fallocate(file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, MAX - 1, 2));
    OUTCOME(ftruncate(file, -1));
    RESULT(sendfile(other, file, &at, 4096));
    RESULT(syscall(SYS_copy_file_range, file, &end, other, NULL, 4096, 0));
    at = MAX;
    OUTCOME(syscall(SYS_copy_file_range, file, NULL, other, &at, 16, 0));
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = MAX, .l_len = 2 };
    OUTCOME(fcntl(file, F_SETLK, &lock));
    lock.l_start = -1, lock.l_len = 0;
    OUTCOME(fcntl(file, F_SETLK, &lock));
    lock.l_whence = SEEK_END, lock.l_start = MAX;
    OUTCOME(fcntl(file, F_SETLK, &lock));
    lock.l_whence = SEEK_SET, lock.l_start = 5, lock.l_len = -MAX - 1;
    OUTCOME(fcntl(file, F_SETLK, &lock));
    show("length of the file", lseek(file, 0, SEEK_END));
}

static void mappings(void)
{
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, -(off_t)PAGE));
    OUTCOME(mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, -(off_t)PAGE));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, MAX & -(off_t)PAGE));
    OUTCOME(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, (off_t)(1UL << 63)));
    OUTCOME(mmap(NULL, -PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap(NULL, -1UL, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OUTCOME(mmap((void *)-PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    OUTCOME(mmap((void *)-PAGE, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    char *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, (MAX - 2 * PAGE) & -(off_t)PAGE);
    say("a mapping at the end of what a file can be: %s", at == MAP_FAILED ? errno_name(errno) : "ok");
    if (at != MAP_FAILED)
        OUTCOME(mremap(at, PAGE, 64 * PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(memory, PAGE, -PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(memory, -PAGE, PAGE, MREMAP_MAYMOVE));
    OUTCOME(mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)-PAGE));
    OUTCOME(munmap(memory, -1UL));
    OUTCOME(munmap((void *)-PAGE, 2 * PAGE));
    OUTCOME(mprotect(memory, -1UL, PROT_READ));
    OUTCOME(madvise(memory, -1UL, MADV_DONTNEED));
    OUTCOME(mlock(memory, -1UL));
    OUTCOME(syscall(SYS_mincore, memory, -1UL, memory));
    OUTCOME(syscall(SYS_mincore, memory, PAGE, -1UL));
}

static void counts(void)
{
    static struct iovec pieces[1024];
    struct iovec minus = { memory, -1UL };
    /* As the kernel has it: name, its length, vectors, their number, control, its length, flags. */
    unsigned long message[7] = { 0, 0, (unsigned long)pieces, -1UL, 0, 0, 0 };
    struct rlimit limit;
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    for (size_t at = 0; at < COUNT_OF(pieces); at++)
        pieces[at] = (struct iovec){ memory, MAX };
    OUTCOME(readv(other, pieces, 1024));
    OUTCOME(readv(other, pieces, 1025));
    OUTCOME(readv(other, pieces, -1));
    OUTCOME(readv(other, &minus, 1));
    OUTCOME(read(other, memory, -1UL));
    OUTCOME(write(other, (void *)-8UL, 16));
    OUTCOME(syscall(SYS_sendmsg, pair[0], message, 0));
    pieces[0].iov_len = 16;
    message[3] = 1, message[4] = (unsigned long)memory, message[5] = -1UL;
    OUTCOME(syscall(SYS_sendmsg, pair[0], message, 0));
    OUTCOME(syscall(SYS_recvmmsg, pair[1], -16L, 4, MSG_DONTWAIT, NULL));
    need(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    OUTCOME(syscall(SYS_poll, memory, 0xffffffffUL, 0));
    OUTCOME(syscall(SYS_poll, -8L, 2, 0));
    OUTCOME(syscall(SYS_select, -1, NULL, NULL, NULL, NULL));
    OUTCOME(syscall(SYS_epoll_wait, epoll_create1(0), memory, 0x7fffffff / 12 + 1, 0));
    OUTCOME(syscall(SYS_getgroups, -1, memory));
    OUTCOME(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, memory, -1));
    OUTCOME(syscall(SYS_getdents64, open(".", O_RDONLY), -16L, 64));
    OUTCOME(syscall(SYS_futex, -4L, FUTEX_WAIT, 0, NULL));
    OUTCOME(syscall(SYS_futex, TOP - 2, FUTEX_WAKE, 1));
    OUTCOME(syscall(SYS_sched_setaffinity, 0, -1UL, -8L));
    OUTCOME(syscall(SYS_process_vm_readv, getpid(), pieces, -1UL, pieces, 1, 0));
    OUTCOME(syscall(SYS_clone3, -64L, 64));
    OUTCOME(syscall(SYS_close_range, 100, 0xffffffffUL, 0));
    OUTCOME(dup2(0, 0x7fffffff));
    OUTCOME(fcntl(0, F_DUPFD, 0x7fffffff));
}

static int attempt(void *unused)
{
    (void)unused;
    memory = fresh_pages(4);
    file = open("file", O_RDWR | O_CREAT, 0600);
    other = open("other", O_RDWR | O_CREAT, 0600);
    need(file != -1 && other != -1 && write(file, "0123456789", 10) == 10);
    offsets();
    mappings();
    counts();
    return 0;
}

int main(void)
{
    scratch();
    need(chmod(".", 0777) == 0);
    as_nobody(attempt, NULL);
    return 0;
}
