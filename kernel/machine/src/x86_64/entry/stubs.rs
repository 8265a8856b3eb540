//! Entry and exit stubs: interrupts and exceptions, `SYSCALL`, and the one exit to user mode.
//!
//! Stack picture at the top of a thread's kernel stack while it is in the kernel, from high to low: SS, RSP, RFLAGS,
//! CS, RIP, the number (system call number, or -1), RDI, RSI, RDX, RCX, RAX, R8–R11, RBX, RBP, R12–R15, and the *way*
//! word: 0 while SYSRET may be used, else 1. That is [`crate::x86_64::cpu::regs::UserFrame`]. Traps in kernel mode push
//! the same on the current stack.
//!
//! GS points to the processor's block exactly while in the kernel; the stubs of NMI, double fault and machine check
//! cannot know which, so they take it from the end of their own stack and put back what they found.

use core::arch::global_asm;

use super::trap;
use crate::x86_64::cpu::descriptors::{KERNEL_CODE, USER_CODE, USER_DATA};
use crate::x86_64::cpu::{local, msr};

global_asm!(
    include_str!("tables.s"),
    r#"
    .section .text.entry, "ax"

    .macro push_from_rsi
        push_reg rsi, 4
        push_reg rdx, 1
        push_reg rcx, 2
        push_reg rax, 0
        push_reg r8, 8
        push_reg r9, 9
        push_reg r10, 10
        push_reg r11, 11
        push_reg rbx, 3
        push_reg rbp, 6
        push_reg r12, 12
        push_reg r13, 13
        push_reg r14, 14
        push_reg r15, 15
    .endm
    .macro pop_to_rsi
        pop_reg r15, 15
        pop_reg r14, 14
        pop_reg r13, 13
        pop_reg r12, 12
        pop_reg rbp, 6
        pop_reg rbx, 3
        pop_reg r11, 11
        pop_reg r10, 10
        pop_reg r9, 9
        pop_reg r8, 8
        pop_reg rax, 0
        pop_reg rcx, 2
        pop_reg rdx, 1
        pop_reg rsi, 4
    .endm

    /* 256 stubs, 16 bytes apart. */
    .balign 16
    .global trap_stubs
trap_stubs:
    table_begin trap_stubs, 40
    .set vector, 0
    .rept 256
    .balign 16
    .set has_error_code, (vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17)
    .if has_error_code || (vector == 21) || (vector == 29) || (vector == 30)
        table_row 48, 0x08, 5
    .else
    .if vector
        table_row 40, 0x08, 5
    .endif
        push_word -1
    .endif
        push_reg rdi, 5
        mov edi, vector
    .if (vector == 2) || (vector == 8) || (vector == 18)
        jmp trap_paranoid
    .else
        jmp trap_common
    .endif
    .set vector, vector + 1
    .endr
    table_end trap_stubs

    .balign 16
trap_common:
    table_begin trap_common, 56, 0x85, 7
    cld
    push_from_rsi
    push_word 1
    mov rsi, rsp
    mov rdx, [rsp + {number}]
    mov qword ptr [rsp + {number}], -1
    test byte ptr [rsp + {cs}], 3
    jz 5f
    /* A walk ends at what came from a program: the return address is undefined. */
    table_row depth, 0x07, 16
    swapgs
    xor ebp, ebp
    call {from_user}
    jmp return_to_user
    /* A frame record (return address, caller's frame) so that a walk without tables continues into the interrupted
       code. */
    table_row depth, 0x90, 5
5:  push_word [rsp + {rip}]
    push_word rbp
    mov rbp, rsp
    call {from_kernel}
    drop 24
    pop_to_rsi
    pop_reg rdi, 5
    drop 8
    iretq
    table_end trap_common

    /* RDI is on the stack, EDI the vector; GS may be the user's or the kernel's. RBX keeps the old base over the
       call. */
    .balign 16
trap_paranoid:
    table_begin trap_paranoid, 56, 0x85, 7
    cld
    push_from_rsi
    push_word 1
    mov ecx, 0xc0000101
    rdmsr
    shl rdx, 32
    lea rbx, [rax + rdx]
    mov rax, rsp
    or rax, {ist_mask}
    mov rax, [rax - 15]
    mov rdx, rax
    shr rdx, 32
    wrmsr
    mov rsi, rsp
    mov rdx, [rsp + {number}]
    mov qword ptr [rsp + {number}], -1
    push_word [rsp + {rip}]
    push_word rbp
    mov rbp, rsp
    mov rcx, rbx
    call {paranoid}
    drop 16
    mov ecx, 0xc0000101
    mov eax, ebx
    mov rdx, rbx
    shr rdx, 32
    wrmsr
    drop 8
    pop_to_rsi
    pop_reg rdi, 5
    drop 8
    iretq
    table_end trap_paranoid

    /* SYSCALL from compatibility mode, which no program can enter (see `descriptors`). Neither the stack nor GS is the
       kernel's here and interrupts are off; -ENOSYS, and back. */
    .balign 16
    .global syscall_compat
syscall_compat:
    mov eax, -38
    sysret

    .balign 64
    .global syscall_entry
syscall_entry:
    swapgs
    mov gs:[{user_sp}], rsp
    mov rsp, gs:[{stack_top}]
    push {user_data}
    push gs:[{user_sp}]
    push r11
    push {user_code}
    push rcx
    push rax
    push rdi
    push_from_rsi
    push 0
    sti
    mov rdi, rsp
    xor ebp, ebp
    /* RSI and RDX still hold the second and third argument, where the C convention wants two more. */
    call [rip + {hooks}]
    cli
    cmp dword ptr gs:[{work}], 0
    jne return_to_user
    cmp dword ptr [rsp], 0
    jne return_to_user
    /* RBX and R12 to R15 are the program's: the call kept them, and what stores others in the frame sets the way. */
    mov rbp, [rsp + 40]
    mov r10, [rsp + 64]
    mov r9, [rsp + 72]
    mov r8, [rsp + 80]
    mov rax, [rsp + 88]
    mov rdx, [rsp + 104]
    mov rsi, [rsp + 112]
    mov rdi, [rsp + 120]
    mov rcx, [rsp + {rip}]
    mov r11, [rsp + {flags}]
    mov rsp, [rsp + {rsp}]
    swapgs
    sysretq

    /* With all registers from the frame: after traps and other work, and for a thread's first instruction. */
    .global return_to_user
return_to_user:
    cli
    cmp dword ptr gs:[{work}], 0
    jne 2f
    pop rcx
    test ecx, ecx
    jnz 3f
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    pop r11
    pop r10
    pop r9
    pop r8
    pop rax
    pop rcx
    pop rdx
    pop rsi
    pop rdi
    add rsp, 8
    pop rcx
    pop r11
    pop r11
    pop rsp
    swapgs
    sysretq

2:  mov rdi, rsp
    call {work_slow}
    jmp return_to_user

3:  mov rcx, [rsp + {rip} - 8]
    shr rcx, 47
    jnz 4f
    pop_to_rsi
    pop rdi
    add rsp, 8
    swapgs
    iretq

    /* Not an address of a program: its own fault, told while still in the kernel. */
4:  push 1
    mov rdi, rsp
    call {bad_ip}
    jmp return_to_user
"#,
    number = const 8 + 15 * 8,
    cs = const 8 + 17 * 8,
    rip = const 8 + 16 * 8,
    flags = const 8 + 18 * 8,
    rsp = const 8 + 19 * 8,
    ist_mask = const local::IST_SIZE - 1,
    user_sp = const local::USER_SP,
    stack_top = const local::STACK_TOP,
    work = const local::WORK,
    user_data = const USER_DATA,
    user_code = const USER_CODE,
    hooks = sym crate::hooks::HOOKS,
    from_user = sym trap::from_user,
    from_kernel = sym trap::from_kernel,
    paranoid = sym trap::paranoid,
    work_slow = sym trap::return_work,
    bad_ip = sym trap::bad_ip,
);

unsafe extern "C" {
    fn trap_stubs();
    fn syscall_entry();
    fn syscall_compat();
}

/// Address of a vector's stub.
pub(crate) fn stub(vector: usize) -> u64 {
    trap_stubs as *const () as u64 + 16 * vector as u64
}

/// The ways into the kernel by instruction: SYSCALL enters at `entry` with interrupts off and a plain set of flags,
/// from compatibility mode at a stub; SYSENTER raises a protection fault, as its code selector is null.
pub(super) fn enable_syscalls() {
    const SCE: u64 = 1;
    /// TF, IF, DF, IOPL, NT, RF, AC: cleared on entry.
    const MASK: u64 = 0x5_7700;
    /// SYSRET adds 8 for the stack segment and 16 for 64-bit code.
    const RETURN_BASE: u16 = USER_CODE - 16;
    const _: () = assert!(RETURN_BASE + 8 == USER_DATA, "SYSRET derives both selectors from one number");
    let star = u64::from(KERNEL_CODE) << 32 | u64::from(RETURN_BASE) << 48;
    // SAFETY: these registers exist on every x86-64 processor; the selectors and the entry are the kernel's.
    unsafe {
        msr::write(msr::EFER, msr::read(msr::EFER) | SCE);
        msr::write(msr::STAR, star);
        msr::write(msr::LSTAR, syscall_entry as *const () as u64);
        msr::write(msr::CSTAR, syscall_compat as *const () as u64);
        msr::write(msr::SYSENTER_CS, 0);
        msr::write(msr::SYSENTER_ESP, 0);
        msr::write(msr::SYSENTER_EIP, 0);
        msr::write(msr::FMASK, MASK);
    }
}
