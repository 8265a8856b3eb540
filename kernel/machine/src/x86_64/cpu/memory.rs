//! Bulk moves that cost few instructions: 32-byte registers where the processor has them.
//!
//! The kernel is compiled without SIMD, and a user thread's vector registers stay in place while it is in the kernel.
//! So each routine here saves the registers it uses and puts them back; an interrupt in between, even a thread switch
//! inside a fault, saves and restores them as whatever they hold. (An interpreter such as TCG counts each `rep`
//! iteration as an instruction, so string instructions gain nothing over plain stores.)

use core::arch::global_asm;

use super::features::{FOUND, Feature};

global_asm!(
    r#"
    .section .text.memory, "ax"

    /* rdi: page. Clobbers rdi, rcx. */
    .balign 16
    .global zero_page
zero_page:
    test dword ptr [rip + {found}], {wide_moves}
    jz 2f
    sub rsp, 40
    vmovdqu [rsp], ymm0
    vxorps ymm0, ymm0, ymm0
    mov ecx, 8
7:
    .set at, 0
    .rept 16
    vmovaps [rdi + at], ymm0
    .set at, at + 32
    .endr
    add rdi, 512
    dec ecx
    jnz 7b
    vmovdqu ymm0, [rsp]
    add rsp, 40
    ret
2:  sub rsp, 24
    movups [rsp], xmm0
    xorps xmm0, xmm0
    mov ecx, 16
3:
    .set at, 0
    .rept 16
    movaps [rdi + at], xmm0
    .set at, at + 16
    .endr
    add rdi, 256
    dec ecx
    jnz 3b
    movups xmm0, [rsp]
    add rsp, 24
    ret

    /* rdi: destination page, rsi: source page. Clobbers rdi, rsi, rcx. */
    .balign 16
    .global copy_page
copy_page:
    test dword ptr [rip + {found}], {wide_moves}
    jz 2f
    sub rsp, 136
    vmovdqu [rsp], ymm0
    vmovdqu [rsp + 32], ymm1
    vmovdqu [rsp + 64], ymm2
    vmovdqu [rsp + 96], ymm3
    mov ecx, 8
7:
    .set at, 0
    .rept 4
    vmovaps ymm0, [rsi + at]
    vmovaps ymm1, [rsi + at + 32]
    vmovaps ymm2, [rsi + at + 64]
    vmovaps ymm3, [rsi + at + 96]
    vmovaps [rdi + at], ymm0
    vmovaps [rdi + at + 32], ymm1
    vmovaps [rdi + at + 64], ymm2
    vmovaps [rdi + at + 96], ymm3
    .set at, at + 128
    .endr
    add rsi, 512
    add rdi, 512
    dec ecx
    jnz 7b
    vmovdqu ymm0, [rsp]
    vmovdqu ymm1, [rsp + 32]
    vmovdqu ymm2, [rsp + 64]
    vmovdqu ymm3, [rsp + 96]
    add rsp, 136
    ret
2:  mov ecx, 64
3:
    .set at, 0
    .rept 8
    mov rax, [rsi + at]
    mov [rdi + at], rax
    .set at, at + 8
    .endr
    add rsi, 64
    add rdi, 64
    dec ecx
    jnz 3b
    ret
"#,
    found = sym FOUND,
    wide_moves = const Feature::WideMoves as u32,
);

unsafe extern "C" {
    /// Zero the page at `at`.
    pub(crate) fn zero_page(at: *mut u8);
    /// Copy the page at `from` to `to`.
    pub(crate) fn copy_page(to: *mut u8, from: *const u8);
}

/// Copy bytes the compiler must not assume anything about: another processor may be writing them.
///
/// # Safety
/// Both ranges are valid and do not overlap.
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's; kernel memory does not fault.
    unsafe { super::copy::fallible_copy(to, from, bytes) };
}

/// Zero bytes, likewise.
///
/// # Safety
/// The range is valid.
pub(crate) unsafe fn zero(to: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { super::copy::fallible_zero(to, bytes) };
}
