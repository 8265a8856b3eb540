/*
 * sendfile(2), readahead(2), posix_fadvise(2), sync_file_range(2): EINVAL for a length that is negative as a signed
 * number, and for a range that ends beyond the farthest offset. ESPIPE where nothing can be synchronised.
 */
#include "../contract.h"
#include <limits.h>
#include <stdint.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

int main(void)
{
    scratch();
    put_file("source", "abcdefghij", 0600);
    int in = open("source", O_RDWR), out = open("target", O_RDWR | O_CREAT, 0600), ends[2];
    RESULT(pipe(ends));
    section("sendfile");
    RESULT(syscall(SYS_sendfile, out, in, NULL, SIZE_MAX));
    RESULT(syscall(SYS_sendfile, out, in, NULL, (size_t)SSIZE_MAX + 1));
    RESULT(syscall(SYS_sendfile, out, in, NULL, (size_t)SSIZE_MAX));
    RESULT(lseek(in, 0, SEEK_CUR));
    section("readahead");
    RESULT(syscall(SYS_readahead, in, 0L, SIZE_MAX));
    RESULT(syscall(SYS_readahead, in, (long)INT64_MAX, 1UL));
    RESULT(syscall(SYS_readahead, ends[0], 0L, 1UL));
    section("fadvise64");
    RESULT(syscall(SYS_fadvise64, in, 0L, -1L, 3));
    RESULT(syscall(SYS_fadvise64, in, (long)INT64_MAX, (long)INT64_MAX, 3));
    section("sync_file_range");
    RESULT(syscall(SYS_sync_file_range, in, 0L, 0L, 7));
    RESULT(syscall(SYS_sync_file_range, in, 0L, 0L, 8));
    RESULT(syscall(SYS_sync_file_range, in, -1L, 0L, 0));
    RESULT(syscall(SYS_sync_file_range, in, 5L, -1L, 0));
    RESULT(syscall(SYS_sync_file_range, in, (long)INT64_MAX, 1L, 0));
    RESULT(syscall(SYS_sync_file_range, in, (long)INT64_MAX, 0L, 0));
    RESULT(syscall(SYS_sync_file_range, ends[0], 0L, 0L, 0));
    RESULT(syscall(SYS_sync_file_range, 99, 0L, 0L, 8));
    return 0;
}
