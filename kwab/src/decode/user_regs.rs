//! The registers of a program as core files hold them.

use kwab_format::record::RegId;

/// Registers in the order of `struct user_regs_struct` (Linux, `arch/x86/include/asm/user_64.h`).
pub const USER_REGS: [RegId; 27] = [
    RegId::R15,
    RegId::R14,
    RegId::R13,
    RegId::R12,
    RegId::RBP,
    RegId::RBX,
    RegId::R11,
    RegId::R10,
    RegId::R9,
    RegId::R8,
    RegId::RAX,
    RegId::RCX,
    RegId::RDX,
    RegId::RSI,
    RegId::RDI,
    RegId::ORIG_RAX,
    RegId::RIP,
    RegId::CS,
    RegId::RFLAGS,
    RegId::RSP,
    RegId::SS,
    RegId::FS_BASE,
    RegId::GS_BASE,
    RegId::DS,
    RegId::ES,
    RegId::FS,
    RegId::GS,
];
