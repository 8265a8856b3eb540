/*
 * iopl(2), ioperm(2): arguments first, then privilege; and without them no port can be touched, no interrupt flag
 * changed.
 */
#include "contract.h"

static int in_port(void *unused)
{
    (void)unused;
    __asm__ volatile("inb $0x80, %%al" ::: "rax");
    return 0;
}

static int out_port(void *unused)
{
    (void)unused;
    __asm__ volatile("outb %%al, $0x80" ::: "memory");
    return 0;
}

static int no_interrupts(void *unused)
{
    (void)unused;
    __asm__ volatile("cli");
    return 0;
}

static int popped_flags(void *unused)
{
    unsigned long flags;
    (void)unused;
    __asm__ volatile("pushfq\n\torq $0x3000, (%%rsp)\n\tandq $~0x200, (%%rsp)\n\tpopfq\n\tpushfq\n\tpop %0"
                     : "=r"(flags));
    return (flags >> 12 & 3) | (flags & 0x200 ? 0 : 4);
}

int main(void)
{
    RESULT(syscall(SYS_iopl, 4));
    RESULT(syscall(SYS_iopl, -1));
    RESULT(syscall(SYS_iopl, 0));
    RESULT(syscall(SYS_ioperm, 65536, 1, 1));
    RESULT(syscall(SYS_ioperm, 0, 65537, 1));
    RESULT(syscall(SYS_ioperm, ~0UL, 2, 1));
    need(setgid(65534) == 0 && setuid(65534) == 0);
    RESULT(syscall(SYS_iopl, 3));
    RESULT(syscall(SYS_iopl, 0));
    RESULT(syscall(SYS_ioperm, 0x80, 1, 1));
    RESULT(syscall(SYS_ioperm, 0x80, 1, 0));
    show_status("in", in_child(in_port, NULL));
    show_status("out", in_child(out_port, NULL));
    show_status("cli", in_child(no_interrupts, NULL));
    show_status("popf of IOPL 3 without IF", in_child(popped_flags, NULL));
    return 0;
}
