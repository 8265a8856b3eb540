# A kernel's table of system calls, a handler, and functions that make errors in the ways of a compiler.
    .intel_syntax noprefix
    .text
    .globl _start
_start:
    ret

    .type "kernel::sync::lock", @function
"kernel::sync::lock":
    mov eax, 105
    ret
    .size "kernel::sync::lock", . - "kernel::sync::lock"

    .type "kernel::syscalls::control::read", @function
"kernel::syscalls::control::read":
    mov dword ptr [rdi], 0x690001
    ret
    .size "kernel::syscalls::control::read", . - "kernel::syscalls::control::read"

    .type "kernel::time::from_timeval", @function
"kernel::time::from_timeval":
    mov word ptr [rdi + 2], 22
    ret
    .size "kernel::time::from_timeval", . - "kernel::time::from_timeval"

    .type "kernel::syscalls::send_message", @function
"kernel::syscalls::send_message":
    call "kernel::sync::lock"
    call "kernel::time::from_timeval"
    jmp "kernel::syscalls::control::read"
    .size "kernel::syscalls::send_message", . - "kernel::syscalls::send_message"

    .type "kernel::syscalls::setitimer", @function
"kernel::syscalls::setitimer":
    mov rax, -22
    call "kernel::time::from_timeval"
    ret
    .size "kernel::syscalls::setitimer", . - "kernel::syscalls::setitimer"

    .balign 16
    .type trap_stubs, @function
trap_stubs:
    .rept 256
    nop
    .balign 16
    .endr
    .size trap_stubs, . - trap_stubs

    .section .data.rel.ro, "aw"
    .type "kernel::syscalls::TABLE", @object
"kernel::syscalls::TABLE":
    .rept 38
    .quad _start, 0
    .endr
    .quad "kernel::syscalls::setitimer", 1
    .rept 7
    .quad _start, 0
    .endr
    .quad "kernel::syscalls::send_message", 1
    .size "kernel::syscalls::TABLE", . - "kernel::syscalls::TABLE"

    .text
    .type "kernel::fs::write_all", @function
"kernel::fs::write_all":
1:  call "kernel::time::from_timeval"
    call "kernel::syscalls::control::read"
    test eax, eax
    jz 1b
    call "kernel::syscalls::setitimer"
    ret
    .size "kernel::fs::write_all", . - "kernel::fs::write_all"
