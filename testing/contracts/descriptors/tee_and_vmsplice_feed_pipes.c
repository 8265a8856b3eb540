/* tee(2), vmsplice(2): tee duplicates without consuming, vmsplice gathers user memory into a pipe. */
#include "../contract.h"

int main(void)
{
    int from[2], to[2];
    char text[32] = { 0 };
    need(pipe(from) == 0 && pipe(to) == 0);
    struct iovec parts[2] = { { "gath", 4 }, { "ered", 4 } };
    RESULT(vmsplice(from[1], parts, 2, 0));
    RESULT(tee(from[0], to[1], 5, 0));
    RESULT(read(to[0], text, 31));
    show_text("tee", text);
    memset(text, 0, sizeof text);
    RESULT(read(from[0], text, 31));
    show_text("source kept all", text);
    RESULT(tee(from[0], to[1], 5, SPLICE_F_NONBLOCK));
    RESULT(tee(from[0], from[1], 5, 0));
    RESULT(tee(0, to[1], 5, 0));
    return 0;
}
