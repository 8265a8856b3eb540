/*
 * dup2(2): the target is closed first without error, equal numbers are a no-op, and a bad source leaves the target
 * alone.
 */
#include "../contract.h"

int main(void)
{
    int pipe_ends[2];
    need(pipe(pipe_ends) == 0);
    RESULT(dup2(1, 40));
    RESULT(dup2(40, 40));
    RESULT(dup2(-1, 40));
    RESULT(dup2(99, 40));
    RESULT(fcntl(40, F_GETFD));
    RESULT(dup2(1, -1));
    RESULT(dup2(1, 1 << 30));
    RESULT(dup2(99, 99));
    section("the write end replaced by something else is closed");
    need(dup2(1, pipe_ends[1]) == pipe_ends[1]);
    char byte;
    show("read at end of pipe", read(pipe_ends[0], &byte, 1));
    section("dup3");
    RESULT(dup3(1, 41, O_CLOEXEC));
    RESULT(fcntl(41, F_GETFD));
    RESULT(dup3(1, 1, 0));
    RESULT(dup3(1, 42, O_NONBLOCK));
    return 0;
}
