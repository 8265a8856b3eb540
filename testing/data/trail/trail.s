# Functions through which a bad value goes a way that is known: read by kwab/src/analysis/trail/tests.rs.
        .intel_syntax noprefix
        .text
        .macro function name
        .globl \name
        .type \name, @function
\name:
        push rbp
        mov rbp, rsp
        .endm
        .macro done name
        .size \name, . - \name
        .endm

        function _start
        call run
        call set_up
        call serve
        call check_session
        call pick
        ud2
        done _start

# A result, kept in the frame over another call, becomes an argument.
        function run
        sub rsp, 16
        call open_session
        mov [rbp-8], rax
        call other
        mov rdi, [rbp-8]
        call close_session
        leave
        ret
        done run

        function open_session
        xor eax, eax
        pop rbp
        ret
        done open_session

        function other
        pop rbp
        ret
        done other

# A constant becomes an argument.
        function set_up
        mov esi, 7
        xor edi, edi
        call close_session
        pop rbp
        ret
        done set_up

        function close_session
        push rbx
        sub rsp, 8
        mov rbx, rdi
        test esi, esi
        je 1f
        nop
1:
        mov rax, [rbx+0x18]
        add rsp, 8
        pop rbx
        pop rbp
        ret
        done close_session

# A table of functions with a hole.
        function serve
        lea rdi, table[rip]
        call dispatch
        pop rbp
        ret
        done serve

        function dispatch
        mov rax, [rdi+8]
        call rax
        pop rbp
        ret
        done dispatch

# A check that leads to the end of the program in a block of its own.
        function check_session
        call open_session
        test rax, rax
        je 1f
        pop rbp
        ret
1:      call __assert_fail
        ud2
        done check_session

        function __assert_fail
        ud2
        done __assert_fail

# Two ways to the same use.
        function pick
        cmp esi, 1
        je 1f
        mov rax, [rdi]
        jmp 2f
1:      mov rax, [rdi+8]
2:
        mov rcx, [rax]
        pop rbp
        ret
        done pick

        .data
        .globl table
table:  .quad 0, 0
        .section .note.GNU-stack,"",@progbits
