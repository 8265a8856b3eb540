//! The copies that may fault, and the table that says where they continue when they do.
//!
//! One routine copies in both directions: either address may be the user's. On a fault in a wide move the fix-up goes
//! on byte by byte, so that the count of bytes not copied is exact; a fault in a byte move ends the copy.

use core::arch::{asm, global_asm};

use super::features::{FOUND, Feature};

global_asm!(
    r#"
    .macro fixup fault, resume
    .pushsection .fixups, "aw"
    .balign 8
    .quad \fault, \resume
    .popsection
    .endm

    .section .text.memory, "ax"

    /* rdi: to, rsi: from, rdx: bytes. Returns in rax how many were not copied. */
    .balign 16
    .global fallible_copy
fallible_copy:
    cmp rdx, 32
    jae 20f
60: cmp rdx, 8
    jb 12f
61: mov rax, [rsi]
13: mov [rdi], rax
    add rsi, 8
    add rdi, 8
    sub rdx, 8
    cmp rdx, 8
    jae 61b
12: test rdx, rdx
    jz 19f
14: mov al, [rsi]
15: mov [rdi], al
    inc rsi
    inc rdi
    dec rdx
    jnz 14b
19: mov rax, rdx
    ret
    fixup 61b, 12b
    fixup 13b, 12b
    fixup 14b, 19b
    fixup 15b, 19b

20: cmp rdx, 256
    jae 80f
70: mov rax, [rsi]
71: mov rcx, [rsi + 8]
72: mov r8, [rsi + 16]
73: mov r9, [rsi + 24]
74: mov [rdi], rax
75: mov [rdi + 8], rcx
76: mov [rdi + 16], r8
77: mov [rdi + 24], r9
    add rsi, 32
    add rdi, 32
    sub rdx, 32
    cmp rdx, 32
    jae 70b
    test rdx, rdx
    jnz 60b
    xor eax, eax
    ret
    fixup 70b, 12b
    fixup 71b, 12b
    fixup 72b, 12b
    fixup 73b, 12b
    fixup 74b, 12b
    fixup 75b, 12b
    fixup 76b, 12b
    fixup 77b, 12b

80: test dword ptr [rip + {found}], {wide_moves}
    jz 70b
    sub rsp, 136
    vmovdqu [rsp], ymm0
    vmovdqu [rsp + 32], ymm1
    vmovdqu [rsp + 64], ymm2
    vmovdqu [rsp + 96], ymm3
21: vmovdqu ymm0, [rsi]
22: vmovdqu ymm1, [rsi + 32]
23: vmovdqu ymm2, [rsi + 64]
24: vmovdqu ymm3, [rsi + 96]
25: vmovdqu [rdi], ymm0
26: vmovdqu [rdi + 32], ymm1
27: vmovdqu [rdi + 64], ymm2
28: vmovdqu [rdi + 96], ymm3
    add rsi, 128
    add rdi, 128
    sub rdx, 128
    cmp rdx, 128
    jae 21b
    mov eax, 1
    test rdx, rdx
    jz 29f
    /* The rest, together with bytes before it that are copied once more. */
83: vmovdqu ymm0, [rsi + rdx - 128]
84: vmovdqu ymm1, [rsi + rdx - 96]
85: vmovdqu ymm2, [rsi + rdx - 64]
86: vmovdqu ymm3, [rsi + rdx - 32]
87: vmovdqu [rdi + rdx - 128], ymm0
88: vmovdqu [rdi + rdx - 96], ymm1
89: vmovdqu [rdi + rdx - 64], ymm2
90: vmovdqu [rdi + rdx - 32], ymm3
    xor edx, edx
29: vmovdqu ymm0, [rsp]
    vmovdqu ymm1, [rsp + 32]
    vmovdqu ymm2, [rsp + 64]
    vmovdqu ymm3, [rsp + 96]
    add rsp, 136
    test eax, eax
    jz 12b
    xor eax, eax
    ret
30: xor eax, eax
    jmp 29b
    fixup 21b, 30b
    fixup 22b, 30b
    fixup 23b, 30b
    fixup 24b, 30b
    fixup 25b, 30b
    fixup 26b, 30b
    fixup 27b, 30b
    fixup 28b, 30b
    fixup 83b, 30b
    fixup 84b, 30b
    fixup 85b, 30b
    fixup 86b, 30b
    fixup 87b, 30b
    fixup 88b, 30b
    fixup 89b, 30b
    fixup 90b, 30b

    /* rdi: to, rsi: bytes. Zeroes; returns in rax how many were not written. */
    .balign 16
    .global fallible_zero
fallible_zero:
    xor eax, eax
    cmp rsi, 64
    jb 40f
    cmp rsi, 256
    jb 50f
    test dword ptr [rip + {found}], {wide_moves}
    jz 50f
    sub rsp, 40
    vmovdqu [rsp], ymm0
    vxorps ymm0, ymm0, ymm0
31: vmovdqu [rdi], ymm0
32: vmovdqu [rdi + 32], ymm0
33: vmovdqu [rdi + 64], ymm0
34: vmovdqu [rdi + 96], ymm0
    add rdi, 128
    sub rsi, 128
    cmp rsi, 128
    jae 31b
    mov r8d, 1
    jmp 36f
35: xor r8d, r8d
36: vmovdqu ymm0, [rsp]
    add rsp, 40
    test r8d, r8d
    jnz 40f
    jmp 42f
    fixup 31b, 35b
    fixup 32b, 35b
    fixup 33b, 35b
    fixup 34b, 35b
50: mov [rdi], rax
51: mov [rdi + 8], rax
52: mov [rdi + 16], rax
53: mov [rdi + 24], rax
54: mov [rdi + 32], rax
55: mov [rdi + 40], rax
56: mov [rdi + 48], rax
57: mov [rdi + 56], rax
    add rdi, 64
    sub rsi, 64
    cmp rsi, 64
    jae 50b
    fixup 50b, 42f
    fixup 51b, 42f
    fixup 52b, 42f
    fixup 53b, 42f
    fixup 54b, 42f
    fixup 55b, 42f
    fixup 56b, 42f
    fixup 57b, 42f
40: cmp rsi, 8
    jb 42f
41: mov [rdi], rax
    add rdi, 8
    sub rsi, 8
    cmp rsi, 8
    jae 41b
42: test rsi, rsi
    jz 49f
44: mov byte ptr [rdi], 0
    inc rdi
    dec rsi
    jnz 44b
49: mov rax, rsi
    ret
    fixup 41b, 42b
    fixup 44b, 49b

    /* rdi: to (kernel), rsi: from, rdx: room. Returns the string's length, or room if no NUL was seen, or -1 - bytes
       copied on a fault. Eight bytes at a time: the lowest high bit of r10 marks the first NUL. A word that faults or
       has a NUL is left to the bytes, and what it stores behind the NUL is within the room. */
    .balign 16
    .global fallible_string
fallible_string:
    xor eax, eax
    cmp rdx, 8
    jb 50f
    mov r8, 0x0101010101010101
    mov r9, 0x8080808080808080
    lea r11, [rdx - 8]
53: mov rcx, [rsi + rax]
    mov [rdi + rax], rcx
    mov r10, rcx
    sub r10, r8
    not rcx
    and r10, rcx
    and r10, r9
    jnz 54f
    add rax, 8
    cmp rax, r11
    jbe 53b
50: cmp rax, rdx
    je 59f
51: mov cl, [rsi + rax]
    test cl, cl
    jz 59f
    mov [rdi + rax], cl
    inc rax
    jmp 50b
54: bsf r10, r10
    shr r10d, 3
    add rax, r10
59: ret
52: not rax
    ret
    fixup 51b, 52b
    fixup 53b, 50b
"#,
    found = sym FOUND,
    wide_moves = const Feature::WideMoves as u32,
);

unsafe extern "C" {
    pub(super) fn fallible_copy(to: *mut u8, from: *const u8, bytes: usize) -> usize;
    pub(super) fn fallible_zero(to: *mut u8, bytes: usize) -> usize;
    fn fallible_string(to: *mut u8, from: *const u8, room: usize) -> isize;
}

/// Allow this processor to touch user pages, for the length of one copy.
#[inline]
pub(super) fn open() {
    if super::features::has(Feature::Smap) {
        // SAFETY: STAC exists with SMAP; the copies below touch only the addresses they were given.
        unsafe { asm!("stac", options(nostack)) };
    }
}

#[inline]
pub(super) fn close() {
    if super::features::has(Feature::Smap) {
        // SAFETY: CLAC exists with SMAP.
        unsafe { asm!("clac", options(nostack)) };
    }
}

/// Copy, stopping at the first byte that faults; returns bytes not copied.
///
/// # Safety
/// Each side is either kernel memory valid for the access, or an address in the user half.
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) -> usize {
    open();
    // SAFETY: the caller's; faults on user addresses are caught by the fix-ups.
    let left = unsafe { fallible_copy(to, from, bytes) };
    close();
    left
}

/// Copy between any addresses that may not be mapped, user access closed. For probing.
///
/// # Safety
/// `to` is valid for writing; `from` may be anything whose reading has no side effect.
pub(crate) unsafe fn probe(to: *mut u8, from: *const u8, bytes: usize, user: bool) -> usize {
    if user {
        // SAFETY: as below; user pages may be read.
        return unsafe { copy(to, from, bytes) };
    }
    // SAFETY: the caller's; every load has a fix-up.
    unsafe { fallible_copy(to, from, bytes) }
}

/// Zero user memory; returns bytes not written.
///
/// # Safety
/// `to` and `to + bytes` are in the user half.
pub(crate) unsafe fn zero(to: *mut u8, bytes: usize) -> usize {
    open();
    // SAFETY: the caller's.
    let left = unsafe { fallible_zero(to, bytes) };
    close();
    left
}

/// Copy a string; see the assembly for the result.
///
/// # Safety
/// `to` is valid for `room` bytes; `from` to `from + room` is in the user half.
pub(crate) unsafe fn string(to: *mut u8, from: *const u8, room: usize) -> isize {
    open();
    // SAFETY: the caller's.
    let result = unsafe { fallible_string(to, from, room) };
    close();
    result
}

macro_rules! fallible_move {
    ($load:ident, $store:ident, $type:ty, $reg:ident, $modifier:literal, $size:literal) => {
        /// Load one integer; `Err` on a fault.
        ///
        /// # Safety
        /// `from` is in the user half.
        #[inline]
        pub(crate) unsafe fn $load(from: *const $type) -> Result<$type, ()> {
            let value: $type;
            let failed: u32;
            open();
            // SAFETY: the caller's; the fix-up leaves `failed` at 1.
            unsafe {
                asm!(
                    "mov {failed:e}, 1",
                    concat!("2: mov {value", $modifier, "}, ", $size, " ptr [{from}]"),
                    "xor {failed:e}, {failed:e}",
                    "3:",
                    ".pushsection .fixups, \"aw\"", ".balign 8",
                    ".quad 2b, 3b",
                    ".popsection",
                    value = out($reg) value,
                    failed = out(reg) failed,
                    from = in(reg) from,
                    options(nostack),
                );
            }
            close();
            if failed == 0 { Ok(value) } else { Err(()) }
        }

        /// Store one integer; `Err` on a fault.
        ///
        /// # Safety
        /// `to` is in the user half.
        #[inline]
        pub(crate) unsafe fn $store(to: *mut $type, value: $type) -> Result<(), ()> {
            let failed: u32;
            open();
            // SAFETY: the caller's; the fix-up leaves `failed` at 1.
            unsafe {
                asm!(
                    "mov {failed:e}, 1",
                    concat!("2: mov ", $size, " ptr [{to}], {value", $modifier, "}"),
                    "xor {failed:e}, {failed:e}",
                    "3:",
                    ".pushsection .fixups, \"aw\"", ".balign 8",
                    ".quad 2b, 3b",
                    ".popsection",
                    value = in($reg) value,
                    failed = out(reg) failed,
                    to = in(reg) to,
                    options(nostack),
                );
            }
            close();
            if failed == 0 { Ok(()) } else { Err(()) }
        }
    };
}

fallible_move!(load8, store8, u8, reg_byte, "", "byte");
fallible_move!(load16, store16, u16, reg, ":x", "word");
fallible_move!(load32, store32, u32, reg, ":e", "dword");
fallible_move!(load64, store64, u64, reg, ":r", "qword");

/// Load four words; `Err` on a fault.
///
/// # Safety
/// All of `from` is in the user half.
#[inline]
pub(crate) unsafe fn load_four(from: *const u64) -> Result<[u64; 4], ()> {
    let [a, b, c, d]: [u64; 4];
    let failed: u32;
    open();
    // SAFETY: the caller's; the fix-ups leave `failed` at 1.
    unsafe {
        asm!(
            "mov {failed:e}, 1",
            "20: mov {a}, [{from}]",
            "21: mov {b}, [{from} + 8]",
            "22: mov {c}, [{from} + 16]",
            "23: mov {d}, [{from} + 24]",
            "xor {failed:e}, {failed:e}",
            "29:",
            ".pushsection .fixups, \"aw\"", ".balign 8",
            ".quad 20b, 29b, 21b, 29b, 22b, 29b, 23b, 29b",
            ".popsection",
            a = out(reg) a,
            b = out(reg) b,
            c = out(reg) c,
            d = out(reg) d,
            failed = out(reg) failed,
            from = in(reg) from,
            options(nostack),
        );
    }
    close();
    if failed == 0 { Ok([a, b, c, d]) } else { Err(()) }
}

/// Compare and exchange a word; `Err` on a fault.
///
/// # Safety
/// `at` is in the user half and aligned.
pub(crate) unsafe fn compare_exchange(at: *mut u32, old: u32, new: u32) -> Result<u32, ()> {
    let failed: u32;
    let found: u32;
    open();
    // SAFETY: the caller's; the fix-up leaves `failed` at 1.
    unsafe {
        asm!(
            "mov {failed:e}, 1",
            "2: lock cmpxchg dword ptr [{at}], {new:e}",
            "mov {failed:e}, 0",
            "3:",
            ".pushsection .fixups, \"aw\"", ".balign 8",
            ".quad 2b, 3b",
            ".popsection",
            at = in(reg) at,
            new = in(reg) new,
            failed = out(reg) failed,
            inout("eax") old => found,
            options(nostack),
        );
    }
    close();
    if failed == 0 { Ok(found) } else { Err(()) }
}
