/* splice(2): one end must be a pipe, offsets are honoured for files only, an empty nonblocking pipe is EAGAIN. */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("source", "hello, splice", 0600);
    int in = open("source", O_RDONLY), out = open("target", O_RDWR | O_CREAT, 0600), ends[2];
    need(pipe(ends) == 0);
    off_t offset = 7;
    RESULT(splice(in, &offset, ends[1], NULL, 100, 0));
    show("offset", offset);
    RESULT(splice(ends[0], NULL, out, NULL, 4, 0));
    RESULT(splice(ends[0], NULL, out, NULL, 100, 0));
    char text[16];
    get_file("target", text, sizeof text);
    show_text("target", text);
    RESULT(splice(ends[0], NULL, out, NULL, 1, SPLICE_F_NONBLOCK));
    RESULT(splice(in, NULL, out, NULL, 1, 0));
    offset = 0;
    RESULT(splice(ends[0], &offset, out, NULL, 1, 0));
    RESULT(splice(in, NULL, ends[1], NULL, 0, 0));
    RESULT(splice(-1, NULL, ends[1], NULL, 1, 0));
    close(ends[1]);
    RESULT(splice(ends[0], NULL, out, NULL, 1, 0));
    return 0;
}
