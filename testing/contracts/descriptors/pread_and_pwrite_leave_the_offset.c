/*
 * pread(2): positioned reads and writes do not move the offset, refuse pipes and negative offsets; O_APPEND wins
 * over pwrite.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "abcdefghij", 0600);
    int fd = open("file", O_RDWR), ends[2];
    char text[16] = { 0 };
    need(pipe(ends) == 0);
    RESULT(pread(fd, text, 3, 4));
    show_text("text", text);
    RESULT(pwrite(fd, "XY", 2, 1));
    RESULT(lseek(fd, 0, SEEK_CUR));
    RESULT(pread(fd, text, 16, 8));
    RESULT(pread(fd, text, 16, 10));
    RESULT(pread(fd, text, 1, -1));
    RESULT(pwrite(fd, text, 1, -1));
    RESULT(pread(ends[0], text, 1, 0));
    RESULT(pwrite(ends[1], text, 1, 0));
    RESULT(pread(fd, BAD_POINTER, 4, 0));
    int append = open("file", O_RDWR | O_APPEND);
    RESULT(pwrite(append, "END", 3, 0));
    get_file("file", text, sizeof text);
    show_text("file", text);
    return 0;
}
