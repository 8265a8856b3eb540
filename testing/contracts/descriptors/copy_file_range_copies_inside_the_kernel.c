/*
 * copy_file_range(2): copies between files, zero at end of file, EINVAL for overlap in one file, EBADF for append
 * targets.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("source", "abcdefghij", 0600);
    int in = open("source", O_RDWR), out = open("target", O_RDWR | O_CREAT, 0600);
    int append = open("target", O_WRONLY | O_APPEND);
    off_t from = 2, to = 1;
    RESULT(copy_file_range(in, &from, out, &to, 5, 0));
    show("from", from);
    show("to", to);
    RESULT(lseek(in, 0, SEEK_CUR));
    RESULT(copy_file_range(in, NULL, out, NULL, 1, 0));
    char text[16] = { 0 };
    get_file("target", text, sizeof text);
    show_text("target", text);
    from = 10;
    RESULT(copy_file_range(in, &from, out, &to, 5, 0));
    from = 0, to = 2;
    RESULT(copy_file_range(in, &from, in, &to, 5, 0));
    RESULT(copy_file_range(in, &from, append, NULL, 5, 0));
    RESULT(copy_file_range(in, &from, out, &to, 5, 1));
    RESULT(copy_file_range(in, NULL, -1, NULL, 5, 0));
    return 0;
}
