//! `memcpy`, `memmove` and `memset` for the whole kernel: the compiler calls them by name for every larger value.
//!
//! The ones that come with the compiler use string instructions, which an interpreter such as TCG runs element by
//! element. Up to 32 bytes everything is loaded before anything is stored, so overlap does not matter; above that the
//! end is done as one more, overlapping, block. From [`WIDE`] bytes on the vector registers are worth saving and
//! restoring (see `memory`).

use core::arch::global_asm;

use super::features::{FOUND, Feature};

/// Bytes from which vector registers pay.
const WIDE: usize = 256;

global_asm!(
    r#"
    .section .text.memory, "ax"

    /* rdi: to, rsi: from, rdx: bytes; returns rdi. May clobber rcx, rsi, rdi, rdx, r8 to r11. */
    .balign 16
    .global memcpy
memcpy:
    mov rax, rdi
    cmp rdx, 16
    jb 20f
    cmp rdx, 32
    ja 30f
    mov rcx, [rsi]
    mov r8, [rsi + 8]
    mov r9, [rsi + rdx - 16]
    mov r10, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + 8], r8
    mov [rdi + rdx - 16], r9
    mov [rdi + rdx - 8], r10
    ret
20: cmp edx, 8
    jb 21f
    mov rcx, [rsi]
    mov r8, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + rdx - 8], r8
    ret
21: cmp edx, 4
    jb 22f
    mov ecx, [rsi]
    mov r8d, [rsi + rdx - 4]
    mov [rdi], ecx
    mov [rdi + rdx - 4], r8d
    ret
22: test edx, edx
    jz 23f
    mov r9d, edx
    shr r9d, 1
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi + r9]
    movzx r10d, byte ptr [rsi + rdx - 1]
    mov [rdi], cl
    mov [rdi + r9], r8b
    mov [rdi + rdx - 1], r10b
23: ret

30: cmp rdx, {wide}
    jae 40f
31: mov rcx, [rsi]
    mov r8, [rsi + 8]
    mov r9, [rsi + 16]
    mov r10, [rsi + 24]
    mov [rdi], rcx
    mov [rdi + 8], r8
    mov [rdi + 16], r9
    mov [rdi + 24], r10
    add rsi, 32
    add rdi, 32
    sub rdx, 32
    cmp rdx, 32
    ja 31b
    mov rcx, [rsi + rdx - 32]
    mov r8, [rsi + rdx - 24]
    mov r9, [rsi + rdx - 16]
    mov r10, [rsi + rdx - 8]
    mov [rdi + rdx - 32], rcx
    mov [rdi + rdx - 24], r8
    mov [rdi + rdx - 16], r9
    mov [rdi + rdx - 8], r10
    ret

40: test dword ptr [rip + {found}], {wide_moves}
    jz 31b
    sub rsp, 136
    vmovdqu [rsp], ymm0
    vmovdqu [rsp + 32], ymm2
    vmovdqu [rsp + 64], ymm3
    vmovdqu [rsp + 96], ymm4
41: vmovdqu ymm0, [rsi]
    vmovdqu ymm2, [rsi + 32]
    vmovdqu ymm3, [rsi + 64]
    vmovdqu ymm4, [rsi + 96]
    vmovdqu [rdi], ymm0
    vmovdqu [rdi + 32], ymm2
    vmovdqu [rdi + 64], ymm3
    vmovdqu [rdi + 96], ymm4
    add rsi, 128
    add rdi, 128
    sub rdx, 128
    cmp rdx, 128
    ja 41b
    vmovdqu ymm0, [rsi + rdx - 128]
    vmovdqu ymm2, [rsi + rdx - 96]
    vmovdqu ymm3, [rsi + rdx - 64]
    vmovdqu ymm4, [rsi + rdx - 32]
    vmovdqu [rdi + rdx - 128], ymm0
    vmovdqu [rdi + rdx - 96], ymm2
    vmovdqu [rdi + rdx - 64], ymm3
    vmovdqu [rdi + rdx - 32], ymm4
    vmovdqu ymm0, [rsp]
    vmovdqu ymm2, [rsp + 32]
    vmovdqu ymm3, [rsp + 64]
    vmovdqu ymm4, [rsp + 96]
    add rsp, 136
    ret

    /* The same, but the ranges may overlap. */
    .balign 16
    .global memmove
memmove:
    cmp rdx, 32
    jbe memcpy
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jb 52f
    neg rcx
    cmp rcx, rdx
    jae memcpy
    /* The target begins before the source: upwards. Each block is loaded before any of it is stored. */
    mov rax, rdi
50: mov rcx, [rsi]
    mov r8, [rsi + 8]
    mov r9, [rsi + 16]
    mov r10, [rsi + 24]
    mov [rdi], rcx
    mov [rdi + 8], r8
    mov [rdi + 16], r9
    mov [rdi + 24], r10
    add rsi, 32
    add rdi, 32
    sub rdx, 32
    cmp rdx, 32
    ja 50b
    /* 1 to 32 bytes are left: those that memcpy loads before it stores. It answers with its own target. */
    push rax
    call memcpy
    pop rax
    ret
    /* The target begins inside the source: downwards. */
52: mov rcx, [rsi + rdx - 8]
    mov r8, [rsi + rdx - 16]
    mov r9, [rsi + rdx - 24]
    mov r10, [rsi + rdx - 32]
    mov [rdi + rdx - 8], rcx
    mov [rdi + rdx - 16], r8
    mov [rdi + rdx - 24], r9
    mov [rdi + rdx - 32], r10
    sub rdx, 32
    cmp rdx, 32
    ja 52b
    jmp memcpy

    /* rdi: to, esi: byte, rdx: bytes; returns rdi. */
    .balign 16
    .global memset
memset:
    mov rax, rdi
    movzx ecx, sil
    mov r8, 0x0101010101010101
    imul rcx, r8
    cmp rdx, 8
    jb 64f
    cmp rdx, {wide}
    jae 70f
60: cmp rdx, 32
    jb 62f
61: mov [rdi], rcx
    mov [rdi + 8], rcx
    mov [rdi + 16], rcx
    mov [rdi + 24], rcx
    add rdi, 32
    sub rdx, 32
    cmp rdx, 32
    jae 61b
    test edx, edx
    jz 63f
    /* At least 32 bytes lie below. */
    mov [rdi + rdx - 32], rcx
    mov [rdi + rdx - 24], rcx
    mov [rdi + rdx - 16], rcx
    mov [rdi + rdx - 8], rcx
63: ret
62: mov [rdi], rcx
    mov [rdi + rdx - 8], rcx
    cmp edx, 16
    jbe 63b
    mov [rdi + 8], rcx
    mov [rdi + rdx - 16], rcx
    ret
64: test edx, edx
    jz 63b
65: mov [rdi + rdx - 1], cl
    dec edx
    jnz 65b
    ret
70: test dword ptr [rip + {found}], {wide_moves}
    jz 60b
    sub rsp, 40
    vmovdqu [rsp], ymm0
    sub rsp, 32
    mov [rsp], rcx
    mov [rsp + 8], rcx
    mov [rsp + 16], rcx
    mov [rsp + 24], rcx
    vmovdqu ymm0, [rsp]
    add rsp, 32
71: vmovdqu [rdi], ymm0
    vmovdqu [rdi + 32], ymm0
    vmovdqu [rdi + 64], ymm0
    vmovdqu [rdi + 96], ymm0
    add rdi, 128
    sub rdx, 128
    cmp rdx, 128
    jae 71b
    test edx, edx
    jz 72f
    vmovdqu [rdi + rdx - 128], ymm0
    vmovdqu [rdi + rdx - 96], ymm0
    vmovdqu [rdi + rdx - 64], ymm0
    vmovdqu [rdi + rdx - 32], ymm0
72: vmovdqu ymm0, [rsp]
    add rsp, 40
    ret
"#,
    wide = const WIDE,
    found = sym FOUND,
    wide_moves = const Feature::WideMoves as u32,
);
