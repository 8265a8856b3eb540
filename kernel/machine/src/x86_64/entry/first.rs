//! The first instructions: from the PVH entry (32-bit, paging off) to Rust in the higher half, first where the image is
//! linked, then where [`super::slide`] moved it.
//!
//! Contract with QEMU's `-kernel` (Xen's PVH ABI, "x86/HVM direct boot ABI"): the ELF note of type 18 names the entry;
//! there EBX holds the physical address of the start info, CS and DS are flat, paging and interrupts are off.

use core::arch::global_asm;

use super::{slide, start};
use crate::x86_64::memory::stacks;

global_asm!(
    r#"
    .set KBASE, 0xffffffff80000000

    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_start_loaded

    /* First 1 GiB of physical memory twice: at 0 and in the direct map; its first 32 MiB where the image is linked. The
       window is the 2 GiB above that. */
    .section .data.boot_tables, "aw"
    .balign 4096
    .global boot_root
boot_root:
    .quad boot_low_loaded + 3
    .fill 255, 8, 0
    .quad boot_low_loaded + 3
    .fill 254, 8, 0
    .quad boot_high_loaded + 3
    .global boot_low
boot_low:
    .quad boot_pages_loaded + 3
    .fill 511, 8, 0
    .global boot_high
boot_high:
    .fill 510, 8, 0
    .quad boot_window_loaded + 3
    .quad boot_window_loaded + 0x1003
    .global boot_pages
boot_pages:
    .set page, 0
    .rept 512
    .quad (page << 21) | 0x83
    .set page, page + 1
    .endr
    .global boot_window
boot_window:
    .set page, 0
    .rept {room}
    .quad (page << 21) | 0x83
    .set page, page + 1
    .endr
    .fill {window} - {room}, 8, 0

    .global boot_gdt
boot_gdt:
    .quad 0
    .quad 0x00af9a000000ffff
    .quad 0x00cf92000000ffff
    .global boot_gdt_pointer
boot_gdt_pointer:
    .word 23
    .quad boot_gdt_loaded

    .section .bss.boot_stack, "aw", @nobits
    .balign 4096
    .global boot_stack
boot_stack:
    .skip {stack}
    .global boot_stack_top
boot_stack_top:

    .section .text.boot, "ax"
    .code32
    .global pvh_start
pvh_start:
    cld
    cli
    movl $boot_stack_top_loaded, %esp
    movl %ebx, %esi
    movl $0x80000001, %eax
    cpuid
    movl %edx, %edi
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl $boot_root_loaded, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    testl $(1 << 20), %edi
    jz 1f
    orl $0x800, %eax
1:  wrmsr
    movl %cr0, %eax
    orl $0x80010001, %eax
    movl %eax, %cr0
    lgdtl boot_gdt_pointer_loaded
    pushl $8
    pushl $boot_long_mode_loaded
    lretl
    .code64
    .global boot_long_mode
boot_long_mode:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    xorl %eax, %eax
    movw %ax, %fs
    movw %ax, %gs
    /* From the physical address to where the image is linked, on the stack there. */
    leaq 2f(%rip), %rax
    addq $KBASE, %rax
    jmp *%rax
2:  leaq boot_stack_top(%rip), %rsp
    movl %esi, %ebx
    movl %esi, %edi
    xorl %ebp, %ebp
    call {move}
    /* RAX: how far the image was moved. Go on in the moved one. */
    leaq {start}(%rip), %rcx
    addq %rax, %rcx
    addq %rax, %rsp
    movl %ebx, %edi
    pushq %rbp
    jmp *%rcx
"#,
    stack = const stacks::BOOT_STACK,
    room = const slide::ROOM,
    window = const slide::WINDOW,
    move = sym slide::move_image,
    start = sym start::start,
    options(att_syntax)
);
