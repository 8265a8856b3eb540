/* pipe(2): pipe2 takes O_CLOEXEC, O_NONBLOCK and O_DIRECT only; a bad pointer leaks no descriptor. */
#include "../contract.h"

int main(void)
{
    int ends[2];
    int before = dup(1);
    close(before);
    RESULT(pipe2(ends, O_APPEND));
    RESULT(pipe2(BAD_POINTER, 0));
    int after = dup(1);
    show("no descriptor leaked", before == after);
    RESULT(pipe2(ends, O_CLOEXEC));
    RESULT(fcntl(ends[0], F_GETFD));
    RESULT(fcntl(ends[1], F_GETFL));
    section("packet mode keeps the borders of writes");
    int packets[2];
    RESULT(pipe2(packets, O_DIRECT));
    need(write(packets[1], "first", 5) == 5 && write(packets[1], "second", 6) == 6);
    char text[16];
    RESULT(read(packets[0], text, 16));
    RESULT(read(packets[0], text, 3));
    RESULT(fcntl(packets[0], F_SETFL, O_NONBLOCK | O_DIRECT));
    RESULT(read(packets[0], text, 16));
    return 0;
}
