//! The first instructions: from the PVH entry (32-bit, paging off) to Rust in the higher half.
//!
//! Contract with QEMU's `-kernel` (Xen's PVH ABI, "x86/HVM direct boot ABI"): the ELF note of type 18 names the entry; there
//! EBX holds the physical address of the start info, CS and DS are flat, paging and interrupts are off.

use core::arch::global_asm;

/// Boot stack bytes; `main` runs on it until [`crate::Start::enter`].
pub(crate) const BOOT_STACK: usize = 64 * 1024;

global_asm!(
    r#"
    .set KBASE, 0xffffffff80000000

    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_start - KBASE

    /* First 1 GiB of physical memory three times: at 0, in the direct map, at the image's base. */
    .section .data.boot_tables, "aw"
    .balign 4096
    .global boot_root
boot_root:
    .quad boot_low - KBASE + 3
    .fill 255, 8, 0
    .quad boot_low - KBASE + 3
    .fill 254, 8, 0
    .quad boot_high - KBASE + 3
    .global boot_low
boot_low:
    .quad boot_pages - KBASE + 3
    .fill 511, 8, 0
boot_high:
    .fill 510, 8, 0
    .quad boot_pages - KBASE + 3
    .quad 0
boot_pages:
    .set page, 0
    .rept 512
    .quad (page << 21) | 0x83
    .set page, page + 1
    .endr

boot_gdt:
    .quad 0
    .quad 0x00af9a000000ffff
    .quad 0x00cf92000000ffff
boot_gdt_pointer:
    .word 23
    .quad boot_gdt - KBASE

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
    movl $(boot_stack_top - KBASE), %esp
    movl %ebx, %esi
    movl $0x80000001, %eax
    cpuid
    movl %edx, %edi
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl $(boot_root - KBASE), %eax
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
    lgdtl (boot_gdt_pointer - KBASE)
    pushl $8
    pushl $(2f - KBASE)
    lretl
    .code64
2:  movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    xorl %eax, %eax
    movw %ax, %fs
    movw %ax, %gs
    movq $boot_stack_top, %rsp
    movl %esi, %edi
    xorl %ebp, %ebp
    pushq %rbp
    pushq %rbp
    movq ${start}, %rax
    jmp *%rax
"#,
    stack = const BOOT_STACK,
    start = sym super::start::start,
    options(att_syntax)
);

unsafe extern "C" {
    static mut boot_root: [u64; 512];
    static boot_low: u8;
    static boot_stack: u8;
    static boot_stack_top: u8;
}

/// The root table the processor runs on, by its image address. The kernel's own for good: user spaces copy its upper half.
pub(crate) fn root() -> *mut [u64; 512] {
    &raw mut boot_root
}

/// Bounds of the boot stack.
pub(crate) fn stack_bounds() -> (u64, u64) {
    ((&raw const boot_stack) as u64, (&raw const boot_stack_top) as u64)
}

/// Physical address of the boot tables' third level, which shows the first GiB at its own address.
pub(crate) fn low_table() -> u64 {
    (&raw const boot_low) as u64 - super::layout::IMAGE
}
