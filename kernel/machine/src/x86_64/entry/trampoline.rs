//! The page another processor starts in: from real mode at a low address to Rust in the higher half.
//!
//! The code is copied to [`PAGE`]; the words at its end tell it which tables, stack and block to use. The tables are
//! the kernel's plus the first GiB at its physical address, for the few instructions that run there.

use core::arch::global_asm;
use core::sync::atomic::Ordering::Relaxed;

use crate::addr::PhysAddr;
use crate::x86_64::cpu::local::Local;
use crate::x86_64::cpu::msr;
use crate::x86_64::layout::direct;
use crate::x86_64::memory::paging;
use crate::x86_64::memory::table::{self, PRESENT, WRITE};

/// Below 1 MiB, kept out of the free frames.
const PAGE: PhysAddr = PhysAddr(0x8000);

/// Where an application processor continues.
pub(super) type Entry = extern "C" fn(&'static Local) -> !;

global_asm!(
    r#"
    .section .rodata.trampoline, "a"
    .balign 16
    .global trampoline_start
trampoline_start:
    .code16
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl {page} + trampoline_gdt_pointer - trampoline_start
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl {page} + trampoline_words - trampoline_start, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    movl {page} + trampoline_words + 8 - trampoline_start, %eax
    xorl %edx, %edx
    wrmsr
    movl $0x80010001, %eax
    movl %eax, %cr0
    ljmpl $8, ${page} + trampoline_long - trampoline_start
    .code64
trampoline_long:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movq {page} + trampoline_words + 16 - trampoline_start, %rsp
    movq {page} + trampoline_words + 24 - trampoline_start, %rdi
    movq {page} + trampoline_words + 32 - trampoline_start, %rax
    xorl %ebp, %ebp
    pushq %rbp
    jmp *%rax
    .balign 8
trampoline_gdt:
    .quad 0
    .quad 0x00af9a000000ffff
    .quad 0x00cf92000000ffff
trampoline_gdt_pointer:
    .word 23
    .long {page} + trampoline_gdt - trampoline_start
    .balign 8
    /* Root table, EFER, stack, block, entry. */
    .global trampoline_words
trampoline_words:
    .quad 0, 0, 0, 0, 0
    .global trampoline_end
trampoline_end:
"#,
    page = const PAGE.0,
    options(att_syntax)
);

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_words: u8;
    static trampoline_end: u8;
}

/// Write the page for one processor: it will call `entry` with `local` on the stack ending at `stack`. Returns the
/// page's number for the start-up message. Not for two processors at once.
pub(super) fn prepare(stack: u64, local: &'static Local, entry: Entry) -> u8 {
    let start = &raw const trampoline_start;
    let size = (&raw const trampoline_end) as usize - start as usize;
    let words = (&raw const trampoline_words) as usize - start as usize;
    /// Long mode, and no-execute pages where there are any.
    const EFER_BITS: u64 = 0x900;
    // SAFETY: reading EFER has no effect.
    let efer = unsafe { msr::read(msr::EFER) } & EFER_BITS;
    let values = [root(), efer, stack, core::ptr::from_ref(local) as u64, entry as usize as u64];
    // SAFETY: the page is RAM below 1 MiB that is never handed out, and the code is smaller than it.
    unsafe {
        start.copy_to(direct(PAGE), size);
        direct(PAGE).add(words).cast::<[u64; 5]>().write_unaligned(values);
    }
    (PAGE.0 >> 12) as u8
}

/// The root table for the first instructions.
fn root() -> u64 {
    let at = paging::startup_root();
    // SAFETY: both are root tables; the low entry is the boot tables' first GiB, which has no other users.
    let (from, to) = unsafe { (table::table(table::root_address()), table::table(at)) };
    for (to, from) in to.iter().zip(from) {
        to.store(from.load(Relaxed), Relaxed);
    }
    to[0].store(table::low_table() | PRESENT | WRITE, Relaxed);
    at.0
}
