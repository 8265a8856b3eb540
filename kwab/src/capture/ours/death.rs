//! Reads what our kernel died of (`kernel/src/crash/parts`, `Death`) out of captured memory: the cause with the
//! registers of that moment, where the machine's processors meanwhile run the crash path or stand still.

use kwab_format::record::{CauseKind, Reason, RegId};

use super::super::registers::Processor;
use super::super::space::Space;
use super::table::Table;

/// Bytes of a message or the path of a source file.
const MOST_TEXT: u64 = 512;
/// Bytes of the stack, with what below its pointer may be in use; bytes of code before and from the instruction on.
const STACK: u64 = 16 << 10;
const RED_ZONE: u64 = 128;
const CODE: (u64, u64) = (64, 128);
const PAGE: u64 = 4096;
/// Callers of the instruction, as in the kernel's own dump.
const MOST_FRAMES: usize = 32;
/// Where the upper half of addresses begins.
const KERNEL_HALF: u64 = 1 << 63;
/// The general registers in the order of the kernel's own dump, then the control registers, by their names in its
/// table.
const GENERAL: [(&str, RegId); 21] = [
    ("regs.rax", RegId::RAX),
    ("regs.rbx", RegId::RBX),
    ("regs.rcx", RegId::RCX),
    ("regs.rdx", RegId::RDX),
    ("regs.rsi", RegId::RSI),
    ("regs.rdi", RegId::RDI),
    ("regs.rbp", RegId::RBP),
    ("regs.rsp", RegId::RSP),
    ("regs.r8", RegId::R8),
    ("regs.r9", RegId::R9),
    ("regs.r10", RegId::R10),
    ("regs.r11", RegId::R11),
    ("regs.r12", RegId::R12),
    ("regs.r13", RegId::R13),
    ("regs.r14", RegId::R14),
    ("regs.r15", RegId::R15),
    ("regs.rip", RegId::RIP),
    ("regs.rflags", RegId::RFLAGS),
    ("regs.cs", RegId::CS),
    ("regs.ss", RegId::SS),
    ("regs.orig_rax", RegId::ORIG_RAX),
];
const CONTROL: [(&str, RegId); 8] = [
    ("control.cr0", RegId::CR0),
    ("control.cr3", RegId::CR3),
    ("control.cr4", RegId::CR4),
    ("control.efer", RegId::EFER),
    ("control.fs_base", RegId::FS_BASE),
    ("control.gs_base", RegId::GS_BASE),
    ("control.kernel_gs_base", RegId::KERNEL_GS_BASE),
    ("control.cr2", RegId::CR2),
];

/// A set of registers.
pub type Set = Vec<(RegId, u64)>;

/// An exception with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// Its number, as the processor counts it.
    pub vector: u8,
    /// Its error code.
    pub error: u64,
    /// The address of a page fault.
    pub addr: u64,
}

/// What the kernel died of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The processor that it died on.
    pub cpu: u32,
    /// Kind of death.
    pub kind: CauseKind,
    /// Why it dumps.
    pub reason: Reason,
    /// The message of a panic, or a description of the exception.
    pub message: Vec<u8>,
    /// Source file of a panic, with line and column.
    pub place: (Vec<u8>, u32, u32),
    /// The exception, if it was one.
    pub trap: Option<Trap>,
    /// The registers of that moment.
    pub registers: Set,
    /// The instruction and its callers.
    pub frames: Vec<u64>,
    /// Code around the instruction: the address of the first byte, and the bytes.
    pub code: (u64, Vec<u8>),
    /// The stack in use, likewise.
    pub stack: (u64, Vec<u8>),
}

impl Death {
    /// A register of that moment; 0 for one that is not known.
    pub(super) fn register(&self, wanted: RegId) -> u64 {
        self.registers.iter().find(|(id, _)| *id == wanted).map_or(0, |(_, value)| *value)
    }

    /// Whether the kernel was running.
    pub(super) fn in_kernel(&self) -> bool {
        self.register(RegId::CS) & 3 == 0
    }

    /// The address whose access failed.
    pub(super) fn fault_addr(&self) -> Option<u64> {
        // A page fault has one, be it 0; a double fault only when a page fault came before it.
        let trap = self.trap.filter(|trap| trap.vector == 14 || (trap.vector == 8 && trap.addr != 0))?;
        Some(trap.addr)
    }
}

/// What is read of deaths with.
struct DeathReader<'r> {
    space: &'r Space<'r>,
    table: &'r Table,
}

/// What the kernel died of; `None` when it lives, or does not say.
pub(super) fn read(space: &Space<'_>, table: &Table) -> Option<Death> {
    DeathReader { space, table }.first()
}

/// The registers of the processors that were stopped for a death.
pub(super) fn stopped(space: &Space<'_>, table: &Table, processors: &[Processor]) -> Vec<(u32, Set)> {
    let reader = DeathReader { space, table };
    processors.iter().filter_map(|one| Some((one.number, reader.stopped(one.number)?))).collect()
}

impl DeathReader<'_> {
    fn place(&self, at: u64, name: &str) -> Option<u64> {
        at.checked_add(self.table.get(name)?)
    }

    fn byte(&self, at: u64, name: &str) -> Option<u8> {
        let mut byte = [0];
        self.space.fill(self.place(at, name)?, &mut byte)?;
        Some(byte[0])
    }

    fn short(&self, at: u64, name: &str) -> Option<u16> {
        let mut bytes = [0; 2];
        self.space.fill(self.place(at, name)?, &mut bytes)?;
        Some(u16::from_le_bytes(bytes))
    }

    fn half(&self, at: u64, name: &str) -> Option<u32> {
        self.space.half(self.place(at, name)?)
    }

    fn word(&self, at: u64, name: &str) -> Option<u64> {
        self.space.word(self.place(at, name)?)
    }

    fn text(&self, at: u64, name: &str, length: &str) -> Option<Vec<u8>> {
        let length = self.word(at, length).filter(|length| *length <= MOST_TEXT)?;
        self.space.bytes(self.place(at, name)?, length as usize)
    }

    fn set(&self, general: u64, control: u64) -> Option<Set> {
        let read = |at: u64, list: &[(&str, RegId)]| -> Option<Set> {
            list.iter().map(|(name, id)| Some((*id, self.word(at, name)?))).collect()
        };
        let mut set = read(general, &GENERAL)?;
        set.extend(read(control, &CONTROL)?);
        Some(set)
    }

    fn first(&self) -> Option<Death> {
        let cell = self.table.get("death")?;
        let number = self.half(cell, "death.valid").and_then(|valid| valid.checked_sub(1)).filter(|slot| *slot < 2)?;
        let skip = self.table.get("death.slot")?.checked_mul(u64::from(number))?;
        let at = self.place(cell, "death.slots")?.checked_add(skip)?;
        let is_trap = self.byte(at, "death.trapped")? == 1;
        let trap = Trap {
            vector: self.byte(at, "death.vector")?,
            error: self.word(at, "death.error")?,
            addr: self.word(at, "death.fault_addr")?,
        };
        let trap = Some(trap).filter(|_| is_trap);
        let mut registers = self.set(self.place(at, "death.registers")?, self.place(at, "death.control")?)?;
        // Of a death that was no page fault it is the address of some fault before.
        registers.retain(|(id, _)| *id != RegId::CR2 || trap.is_some_and(|trap| matches!(trap.vector, 8 | 14)));
        let mut death = Death {
            cpu: self.half(at, "death.cpu")?,
            kind: CauseKind(self.short(at, "death.kind")?),
            reason: Reason(self.short(at, "death.reason")?),
            message: self.text(at, "death.message", "death.message_len")?,
            place: (
                self.text(at, "death.file", "death.file_len")?,
                self.half(at, "death.line")?,
                self.half(at, "death.column")?,
            ),
            trap,
            registers,
            frames: Vec::new(),
            code: (0, Vec::new()),
            stack: (0, Vec::new()),
        };
        let (ip, sp) = (death.register(RegId::RIP), death.register(RegId::RSP));
        if death.in_kernel() {
            death.frames = self.callers(ip, death.register(RegId::RBP));
            let start = sp.saturating_sub(RED_ZONE) & !7;
            let bytes = self.space.as_far(start, start.saturating_add(STACK));
            // Of a stack that ran over nothing below its lowest byte is mapped.
            let page = start.checked_next_multiple_of(PAGE).unwrap_or(start);
            let above = || (page, self.space.as_far(page, page.saturating_add(STACK)));
            death.stack = if bytes.is_empty() { above() } else { (start, bytes) };
            // Where the bytes before are not mapped the instruction's own may be.
            let code = [CODE.0, ip & 63, 0].map(|before| {
                let start = ip.saturating_sub(before);
                (start, self.space.as_far(start, ip.saturating_add(CODE.1)))
            });
            let with_ip = code.into_iter().find(|(start, bytes)| start.saturating_add(bytes.len() as u64) > ip);
            death.code = with_ip.unwrap_or_default();
        }
        Some(death)
    }

    fn callers(&self, mut ip: u64, mut fp: u64) -> Vec<u64> {
        let mut frames = Vec::new();
        while ip != 0 && frames.len() < MOST_FRAMES {
            frames.push(ip);
            let record = self.space.word(fp).zip(fp.checked_add(8).and_then(|at| self.space.word(at)));
            let (next, above) = record.filter(|_| fp >= KERNEL_HALF && fp.is_multiple_of(8)).unwrap_or((0, 0));
            ip = above;
            fp = if next > fp { next } else { 0 };
        }
        frames
    }

    fn stopped(&self, cpu: u32) -> Option<Set> {
        let count = self.table.get("cpus.count")?;
        let at = self.table.get("cpus")?.checked_add(8 * u64::from(cpu)).filter(|_| u64::from(cpu) < count)?;
        let block = self.space.word(at).filter(|block| *block != 0)?;
        let at = self.place(block, "cpu.stopped")?;
        let has_stopped = self.half(at, "stopped.state")? == 1;
        let set = self.set(self.place(at, "stopped.registers")?, self.place(at, "stopped.control")?)?;
        has_stopped.then_some(set)
    }
}
