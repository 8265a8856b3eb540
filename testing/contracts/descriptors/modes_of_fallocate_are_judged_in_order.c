/*
 * fallocate(2), ERRORS: which mode is refused by which error does not depend on the range, and comes before the errors
 * of the descriptor: unknown modes and modes of the file system are EOPNOTSUPP, modes that exclude each other EINVAL.
 * copy_file_range(2), ERRORS: EOVERFLOW for a range that ends behind the last number.
 */
#include "../contract.h"

static int file, reader, directory, ends[2], null;

static void modes(const char *title, int fd, off_t start, off_t length)
{
    static const int values[] = { 0, 1, 2, 3, 4, 5, 8, 9, 0xa, 0xb, 0x10, 0x11, 0x12, 0x13, 0x18, 0x20, 0x21, 0x23,
                                  0x28, 0x30, 0x40, 0x41, 0x42, 0x43, 0x48, 0x50, 0x60, 0x80, 0x81, 0x7f, -1, INT_MIN };
    section(title);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        int result = fallocate(fd, values[i], start, length);
        say("mode %#x: %s", values[i], result ? errno_name(errno) : "ok");
    }
}

static void allocations(void)
{
    modes("at the start", file, 0, 5000);
    modes("a range behind the farthest offset", file, INT64_MAX, 2);
    modes("a range that ends at the farthest offset", directory, INT64_MAX - 1, 1);
    modes("no length", file, 0, 0);
    modes("read only", reader, 0, 10);
    modes("a pipe", ends[1], 0, 10);
    modes("a pipe's reader", ends[0], 0, 10);
    modes("a directory", directory, 0, 10);
    modes("a character device", null, 0, 10);
    modes("no descriptor", -1, 0, 10);
    struct stat meta;
    need(fstat(file, &meta) == 0);
    show("size", meta.st_size);
}

static void copy(const char *title, int in, loff_t from, int out, loff_t to, size_t length, unsigned flags)
{
    loff_t *from_at = from == -2 ? NULL : &from, *to_at = to == -2 ? NULL : &to;
    ssize_t done = copy_file_range(in, from_at, out, to_at, length, flags);
    say("%s: %lld %s", title, (long long)done, done == -1 ? errno_name(errno) : "");
}

static void copies(void)
{
    section("copies");
    put_file("source", "0123456789", 0600);
    put_file("target", "", 0600);
    int in = open("source", O_RDWR), out = open("target", O_RDWR);
    need(in != -1 && out != -1);
    copy("all there is, from the start", in, 0, out, 0, SIZE_MAX, 0);
    copy("all there is, from one on", in, 1, out, 0, SIZE_MAX, 0);
    copy("all there is, to one on", in, 0, out, 1, SIZE_MAX, 0);
    copy("all that fits a signed number", in, 1, out, 0, SSIZE_MAX, 0);
    copy("one more than fits a signed number", in, 1, out, 0, (size_t)SSIZE_MAX + 1, 0);
    copy("from below the start", in, -1, out, 0, 1, 0);
    copy("from below the start, nothing", in, -1, out, 0, 0, 0);
    copy("from far below the start", in, INT64_MIN, out, 0, 10, 0);
    copy("to below the start", in, 0, out, -1, 1, 0);
    copy("to far below the start", in, 0, out, INT64_MIN, 10, 0);
    copy("to the farthest offset", in, 0, out, INT64_MAX, 1, 0);
    copy("to the farthest offset, all", in, 0, out, INT64_MAX, SIZE_MAX, 0);
    copy("from the farthest offset", in, INT64_MAX, out, 0, 1, 0);
    copy("from the farthest offset, all", in, INT64_MAX, out, 0, SIZE_MAX, 0);
    copy("behind the end, all", in, 10, out, 0, SIZE_MAX, 0);
    copy("a flag, all", in, 1, out, 0, SIZE_MAX, 1);
    copy("a directory, all", directory, 1, out, 0, SIZE_MAX, 0);
    copy("a pipe, all", ends[0], 1, out, 0, SIZE_MAX, 0);
    copy("to a reader, all", in, 1, reader, 0, SIZE_MAX, 0);
    copy("the same file, all", in, 0, in, 5, SIZE_MAX - 5, 0);
    copy("the same file behind its end", in, 0, in, 10, SIZE_MAX - 10, 0);
    need(lseek(in, 4, SEEK_SET) == 4);
    copy("at the position, all", in, -2, out, -2, SIZE_MAX, 0);
    copy("at the position, what fits", in, -2, out, -2, SIZE_MAX - 4, 0);
    show("position", lseek(in, 0, SEEK_CUR));
}

int main(void)
{
    scratch();
    put_file("file", "0123456789", 0600);
    file = open("file", O_RDWR), reader = open("file", O_RDONLY), directory = open(".", O_RDONLY);
    null = open("/dev/null", O_RDWR);
    need(file != -1 && reader != -1 && directory != -1 && null != -1 && pipe(ends) == 0);
    allocations();
    copies();
    return 0;
}
