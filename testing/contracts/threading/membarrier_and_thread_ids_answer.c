/* membarrier(2), gettid(2), set_tid_address(2): the queries answer and unknown commands are refused. */
#include "../contract.h"

int main(void)
{
    int word = 0;
    long commands = syscall(SYS_membarrier, 0, 0, 0);
    show("private expedited is offered", commands > 0 && (commands & 8));
    RESULT(syscall(SYS_membarrier, 8, 0, 0));
    RESULT(syscall(SYS_membarrier, 16, 0, 0));
    RESULT(syscall(SYS_membarrier, 8, 0, 0));
    RESULT(syscall(SYS_membarrier, 0x40000000, 0, 0));
    RESULT(syscall(SYS_membarrier, 0, 5, 0));
    show("set_tid_address returns the tid", syscall(SYS_set_tid_address, &word) == syscall(SYS_gettid));
    unsigned cpu = 99, node = 99;
    RESULT(syscall(SYS_getcpu, &cpu, &node, NULL));
    say("cpu below 64 %d node %u", cpu < 64, node);
    RESULT(syscall(SYS_getcpu, NULL, NULL, NULL));
    return 0;
}
