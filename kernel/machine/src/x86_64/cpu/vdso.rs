//! The vDSO's code: position-independent, run by programs, never by the kernel.
//!
//! Contract: the kernel places this blob at [`CODE_OFFSET`] in a page of its own, directly behind a data page with, at
//! offsets 0, 8, 16, 24, 32: a sequence number (32 bits, odd during an update), the cycle count at time 0, the
//! multiplier, the shift, and the wall clock at time 0 in nanoseconds. Functions follow the System V calling convention
//! and have the signatures of their calls; what they cannot answer becomes the real system call.

use core::arch::global_asm;

/// Where in its page the code lies.
pub const CODE_OFFSET: usize = 0x400;

global_asm!(
    ".pushsection .rodata.vdso, \"a\"",
    ".globl kwab_vdso_start, kwab_vdso_clock_gettime, kwab_vdso_gettimeofday, kwab_vdso_time",
    ".globl kwab_vdso_getcpu, kwab_vdso_end",
    ".balign 16",
    "kwab_vdso_start:",
    // In: nothing. Out: rax = nanoseconds since boot, r10 = wall clock at boot. Clobbers rcx, rdx, r8, r9.
    "kwab_vdso_now:",
    "lea r8, [rip + kwab_vdso_start - 0x1400]",
    "2: mov r9d, dword ptr [r8]",
    "test r9d, 1",
    "jnz 3f",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, qword ptr [r8 + 8]",
    "mul qword ptr [r8 + 16]",
    "mov rcx, qword ptr [r8 + 24]",
    "shrd rax, rdx, cl",
    "mov r10, qword ptr [r8 + 32]",
    "cmp r9d, dword ptr [r8]",
    "jne 2b",
    "ret",
    "3: pause",
    "jmp 2b",
    // edi = clock, rsi = struct timespec.
    ".balign 16",
    "kwab_vdso_clock_gettime:",
    // The monotonic clock: its words never change, so no sequence number guards them.
    "cmp edi, 1",
    "jne 9f",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, qword ptr [rip + kwab_vdso_start - 0x1400 + 8]",
    "mul qword ptr [rip + kwab_vdso_start - 0x1400 + 16]",
    "mov ecx, dword ptr [rip + kwab_vdso_start - 0x1400 + 24]",
    "shrd rax, rdx, cl",
    "xor edx, edx",
    "mov ecx, 1000000000",
    "div rcx",
    "mov qword ptr [rsi], rax",
    "mov qword ptr [rsi + 8], rdx",
    "xor eax, eax",
    "ret",
    "9:",
    "cmp edi, 7",
    "ja 5f",
    // Clocks 0, 1, 4, 5, 6 and 7; the processor-time clocks 2 and 3 need the kernel.
    "mov eax, 0xf3",
    "bt eax, edi",
    "jnc 5f",
    "call kwab_vdso_now",
    "test edi, edi",
    "je 4f",
    "cmp edi, 5",
    "je 4f",
    "xor r10d, r10d",
    "4: add rax, r10",
    "xor edx, edx",
    "mov ecx, 1000000000",
    "div rcx",
    "mov qword ptr [rsi], rax",
    "mov qword ptr [rsi + 8], rdx",
    "xor eax, eax",
    "ret",
    "5: mov eax, 228",
    "syscall",
    "ret",
    // rdi = struct timeval or null, rsi = struct timezone or null.
    ".balign 16",
    "kwab_vdso_gettimeofday:",
    "test rdi, rdi",
    "je 6f",
    "call kwab_vdso_now",
    "add rax, r10",
    "xor edx, edx",
    "mov ecx, 1000000000",
    "div rcx",
    "mov qword ptr [rdi], rax",
    "mov eax, edx",
    "xor edx, edx",
    "mov ecx, 1000",
    "div ecx",
    "mov qword ptr [rdi + 8], rax",
    "6: test rsi, rsi",
    "je 7f",
    "mov qword ptr [rsi], 0",
    "7: xor eax, eax",
    "ret",
    // rdi = time_t or null.
    ".balign 16",
    "kwab_vdso_time:",
    "call kwab_vdso_now",
    "add rax, r10",
    "xor edx, edx",
    "mov ecx, 1000000000",
    "div rcx",
    "test rdi, rdi",
    "je 8f",
    "mov qword ptr [rdi], rax",
    "8: ret",
    // rdi = cpu, rsi = node.
    ".balign 16",
    "kwab_vdso_getcpu:",
    "mov eax, 309",
    "xor edx, edx",
    "syscall",
    "ret",
    "kwab_vdso_end:",
    ".popsection",
);

unsafe extern "C" {
    static kwab_vdso_start: u8;
    static kwab_vdso_clock_gettime: u8;
    static kwab_vdso_gettimeofday: u8;
    static kwab_vdso_time: u8;
    static kwab_vdso_getcpu: u8;
    static kwab_vdso_end: u8;
}

/// The machine code of all vDSO functions, position-independent, to be copied into the vDSO image.
pub fn code() -> &'static [u8] {
    let start = &raw const kwab_vdso_start;
    // SAFETY: both labels bound one read-only blob of this crate's own assembly, which lives as long as the kernel.
    unsafe { core::slice::from_raw_parts(start, (&raw const kwab_vdso_end).addr() - start.addr()) }
}

/// Exported functions: name, offset into [`code`], length.
pub fn symbols() -> [(&'static str, usize, usize); 4] {
    let start = (&raw const kwab_vdso_start).addr();
    let clock_gettime = (&raw const kwab_vdso_clock_gettime).addr() - start;
    let gettimeofday = (&raw const kwab_vdso_gettimeofday).addr() - start;
    let time = (&raw const kwab_vdso_time).addr() - start;
    let getcpu = (&raw const kwab_vdso_getcpu).addr() - start;
    let end = (&raw const kwab_vdso_end).addr() - start;
    [
        ("__vdso_clock_gettime", clock_gettime, gettimeofday - clock_gettime),
        ("__vdso_gettimeofday", gettimeofday, time - gettimeofday),
        ("__vdso_time", time, getcpu - time),
        ("__vdso_getcpu", getcpu, end - getcpu),
    ]
}
