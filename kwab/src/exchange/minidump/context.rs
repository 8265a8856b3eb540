//! Registers of a thread from the context records of three processors.

use std::io;

use kwab_format::record::{Arch, RegId};
use minidump_common::format::{
    CONTEXT_AMD64, CONTEXT_ARM64, CONTEXT_ARM64_OLD, CONTEXT_X86, MINIDUMP_LOCATION_DESCRIPTOR as Location,
    ProcessorArchitecture as Processor,
};

use super::super::process::ProcessThread;
use super::container::Container;

/// A processor whose contexts are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cpu {
    Amd64,
    X86,
    Arm64,
    /// AArch64 as Breakpad wrote it before Windows had a layout.
    Arm64Old,
}

/// Bytes of a 32-bit x86 context without the vector state that later processors added.
const X86_WITHOUT_VECTORS: usize = 204;
/// Bytes of the others up to the end of the program counter; what a file has less than the rest is zero.
const AMD64_UP_TO_RIP: usize = 256;
const ARM64_UP_TO_PC: usize = 272;
/// Bytes of an `XSAVE` header; its first word says which parts are there (x87 and SSE).
const XSAVE_HEADER: usize = 64;
const X87_AND_SSE: u8 = 3;

impl Cpu {
    /// The processor by the number that a system info stream gives it.
    pub(super) fn of(number: u16) -> Option<Self> {
        const KNOWN: [(Processor, Cpu); 5] = [
            (Processor::PROCESSOR_ARCHITECTURE_AMD64, Cpu::Amd64),
            (Processor::PROCESSOR_ARCHITECTURE_INTEL, Cpu::X86),
            (Processor::PROCESSOR_ARCHITECTURE_IA32_ON_WIN64, Cpu::X86),
            (Processor::PROCESSOR_ARCHITECTURE_ARM64, Cpu::Arm64),
            (Processor::PROCESSOR_ARCHITECTURE_ARM64_OLD, Cpu::Arm64Old),
        ];
        KNOWN.iter().find(|(known, _)| *known as u16 == number).map(|(_, cpu)| *cpu)
    }

    /// The same by the length of a context, for a file without that stream.
    pub(super) fn of_length(length: u32) -> Option<Self> {
        match length {
            1232.. => Some(Self::Amd64),
            716 => Some(Self::X86),
            912 => Some(Self::Arm64),
            _ => None,
        }
    }

    /// What a dump calls it; the format has no number for 32-bit x86.
    pub(super) const fn arch(self) -> Option<Arch> {
        match self {
            Self::Amd64 => Some(Arch::X86_64),
            Self::X86 => None,
            Self::Arm64 | Self::Arm64Old => Some(Arch::AARCH64),
        }
    }

    /// Bytes of an address.
    pub(super) const fn word(self) -> usize {
        if matches!(self, Self::X86) { 4 } else { 8 }
    }
}

/// Fills in the registers of a thread; `false` when they are not in the file.
pub(super) fn read(
    container: &Container<'_>,
    cpu: Cpu,
    location: Location,
    thread: &mut ProcessThread,
) -> io::Result<bool> {
    if !container.has_room_for(location) {
        return Ok(false);
    }
    let what = format!("registers of thread {}", thread.tid);
    let read = match cpu {
        Cpu::Amd64 => {
            let found: Option<CONTEXT_AMD64> = container.structure(&what, location, AMD64_UP_TO_RIP)?;
            found.map(|context| of_amd64(&context, thread)).is_some()
        }
        Cpu::X86 => {
            let found: Option<CONTEXT_X86> = container.structure(&what, location, X86_WITHOUT_VECTORS)?;
            found.map(|context| of_x86(&context, thread)).is_some()
        }
        Cpu::Arm64 => {
            let found: Option<CONTEXT_ARM64> = container.structure(&what, location, ARM64_UP_TO_PC)?;
            let found = found.map(|it| (it.iregs, it.sp, it.pc, it.cpsr));
            found.map(|(x, sp, pc, cpsr)| of_arm64(&x, sp, pc, cpsr, thread)).is_some()
        }
        Cpu::Arm64Old => {
            let found: Option<CONTEXT_ARM64_OLD> = container.structure(&what, location, ARM64_UP_TO_PC)?;
            let found = found.map(|it| (it.iregs, it.sp, it.pc, it.cpsr));
            found.map(|(x, sp, pc, cpsr)| of_arm64(&x, sp, pc, cpsr, thread)).is_some()
        }
    };
    Ok(read)
}

fn of_amd64(context: &CONTEXT_AMD64, thread: &mut ProcessThread) {
    let c = context;
    thread.registers = vec![
        (RegId::R15, c.r15),
        (RegId::R14, c.r14),
        (RegId::R13, c.r13),
        (RegId::R12, c.r12),
        (RegId::RBP, c.rbp),
        (RegId::RBX, c.rbx),
        (RegId::R11, c.r11),
        (RegId::R10, c.r10),
        (RegId::R9, c.r9),
        (RegId::R8, c.r8),
        (RegId::RAX, c.rax),
        (RegId::RCX, c.rcx),
        (RegId::RDX, c.rdx),
        (RegId::RSI, c.rsi),
        (RegId::RDI, c.rdi),
        (RegId::RIP, c.rip),
        (RegId::CS, c.cs.into()),
        (RegId::RFLAGS, c.eflags.into()),
        (RegId::RSP, c.rsp),
        (RegId::SS, c.ss.into()),
        (RegId::DS, c.ds.into()),
        (RegId::ES, c.es.into()),
        (RegId::FS, c.fs.into()),
        (RegId::GS, c.gs.into()),
    ];
    (thread.ip, thread.sp) = (Some(c.rip), Some(c.rsp));
    if c.float_save.iter().any(|byte| *byte != 0) {
        thread.extended = c.float_save.to_vec();
        thread.extended.resize(c.float_save.len() + XSAVE_HEADER, 0);
        thread.extended[c.float_save.len()] = X87_AND_SSE;
    }
}

fn of_x86(context: &CONTEXT_X86, thread: &mut ProcessThread) {
    let c = context;
    let values = [
        ("eax", c.eax),
        ("ebx", c.ebx),
        ("ecx", c.ecx),
        ("edx", c.edx),
        ("esi", c.esi),
        ("edi", c.edi),
        ("ebp", c.ebp),
        ("esp", c.esp),
        ("eip", c.eip),
        ("eflags", c.eflags),
        ("cs", c.cs),
        ("ss", c.ss),
        ("ds", c.ds),
        ("es", c.es),
        ("fs", c.fs),
        ("gs", c.gs),
    ];
    thread.named = values.map(|(name, value)| (name, value.into())).to_vec();
    (thread.ip, thread.sp) = (Some(c.eip.into()), Some(c.esp.into()));
}

/// The DWARF numbers of AArch64: x0 to x30, then the stack pointer and the program counter.
fn of_arm64(x: &[u64; 31], sp: u64, pc: u64, cpsr: u32, thread: &mut ProcessThread) {
    let values = x.iter().copied().chain([sp, pc]);
    thread.registers = (0..).map(RegId).zip(values).chain([(RegId::PSTATE, cpsr.into())]).collect();
    (thread.ip, thread.sp) = (Some(pc), Some(sp));
}
