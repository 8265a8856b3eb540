/*
 * sendfile(2): with an offset pointer the file position stays and the pointer advances; without, the position
 * advances.
 */
#include "../contract.h"
#include <sys/sendfile.h>

int main(void)
{
    scratch();
    put_file("source", "0123456789", 0600);
    int in = open("source", O_RDONLY), out = open("target", O_RDWR | O_CREAT, 0600), ends[2];
    need(pipe(ends) == 0);
    off_t offset = 3;
    RESULT(sendfile(out, in, &offset, 4));
    show("offset", offset);
    RESULT(lseek(in, 0, SEEK_CUR));
    RESULT(sendfile(out, in, NULL, 2));
    RESULT(lseek(in, 0, SEEK_CUR));
    offset = 8;
    RESULT(sendfile(ends[1], in, &offset, 100));
    show("offset", offset);
    RESULT(sendfile(out, in, &offset, 100));
    char text[16];
    get_file("target", text, sizeof text);
    show_text("target", text);
    memset(text, 0, sizeof text);
    RESULT(read(ends[0], text, 15));
    show_text("pipe", text);
    RESULT(sendfile(in, out, NULL, 1));
    RESULT(sendfile(out, -1, NULL, 1));
    RESULT(sendfile(out, ends[0], &offset, 1));
    offset = -1;
    RESULT(sendfile(out, in, &offset, 1));
    RESULT(sendfile(out, in, BAD_POINTER, 1));
    return 0;
}
