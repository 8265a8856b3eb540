/* The way of both example kernels from QEMU's `-kernel` to `kernel_main`, and from an exception to `exception`.

   In (PVH, Xen's "x86/HVM direct boot ABI"): 32 bits, flat CS and DS, paging and interrupts off.
   Out: 64 bits, the first GiB mapped where it is in pages of 2 MiB, but for the first one; `kernel_main()`.

   An exception arrives as `exception(frame, cr2, cr3)` on the stack that ran, and does not return. `frame` points at
   the registers in the order of their DWARF numbers without rsp, then vector, error code and what the processor pushed:
   kwab_crash::TrapFrame, struct kwab_trap_frame. */

    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad start

    .section .data.boot, "aw", @progbits
    .balign 4096
page_root:
    .quad page_middle + 3
    .fill 511, 8, 0
page_middle:
    .quad page_low + 3
    .fill 511, 8, 0
page_low:
    .quad 0
    .set page, 1
    .rept 511
    .quad (page << 21) | 0x83
    .set page, page + 1
    .endr
segments:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
segments_pointer:
    .word 23
    .quad segments
gates_pointer:
    .word 32 * 16 - 1
    .quad gates

    .section .bss.boot, "aw", @nobits
    .balign 4096
gates:
    .skip 32 * 16
    .balign 4096
    .global stack_low
stack_low:
    .skip 16384
    .global stack_high
stack_high:

    .section .text.boot, "ax", @progbits
    .code32
    .global start
start:
    cld
    cli
    movl $page_root, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x900, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80010001, %eax
    movl %eax, %cr0
    lgdtl segments_pointer
    ljmpl $8, $start_long

    .code64
start_long:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $stack_high, %esp
    xorl %ebp, %ebp
    /* A gate for each exception of the processor: its stub is 16 bytes behind the one before. */
    movl $stubs, %eax
    movl $gates, %edi
    movl $32, %ecx
1:  movw %ax, (%rdi)
    movw $8, 2(%rdi)
    movw $0x8e00, 4(%rdi)
    movl %eax, %edx
    shrl $16, %edx
    movw %dx, 6(%rdi)
    addl $16, %eax
    addl $16, %edi
    decl %ecx
    jnz 1b
    lidt gates_pointer
    call kernel_main
2:  hlt
    jmp 2b

    .balign 16
stubs:
    .set vector, 0
    .rept 32
    .balign 16
    /* The processor pushes an error code for these (SDM volume 3, table 6-1); the others get a zero in its place. */
    .if ((0x60227d00 >> vector) & 1) == 0
    pushq $0
    .endif
    pushq $vector
    jmp taken
    .set vector, vector + 1
    .endr
taken:
    pushq %r15
    pushq %r14
    pushq %r13
    pushq %r12
    pushq %r11
    pushq %r10
    pushq %r9
    pushq %r8
    pushq %rbp
    pushq %rdi
    pushq %rsi
    pushq %rbx
    pushq %rcx
    pushq %rdx
    pushq %rax
    cld
    movq %rsp, %rdi
    movq %cr2, %rsi
    movq %cr3, %rdx
    andq $-16, %rsp
    call exception
3:  hlt
    jmp 3b

    .section .note.GNU-stack, "", @progbits
