//! Writes a kernel's death as a kwab dump: what died, its registers, the stack, the code that ran, the log.
//!
//! A [`Crash`] borrows everything that a small kernel knows when it dies; [`Crash::write`] seals it, most valuable
//! first, into any [`Sink`]: a region of memory, a disk, or armoured lines on a serial console
//! ([`kwab_format::armour::ArmourSink`]). Nothing allocates, locks or panics, and the only memory it needs is the
//! buffer that the caller keeps for it. [`TrapFrame`] is what the entry of an exception pushes.
#![no_std]
#![forbid(unsafe_code)]

use kwab_format::record::{
    Arch, Cause, CauseKind, Identity, Image, ImageKind, LogChunk, Memory, MemoryKind, Reason, Reg, RegId, RegisterRole,
    Registers, StackBounds,
};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind, Sink, WriteError, Writer};

/// The registers of interrupted x86_64 code, in the order in which `boot/start.S` pushes them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TrapFrame {
    /// rax, rdx, rcx, rbx, rsi, rdi, rbp, r8 to r15.
    pub general: [u64; 15],
    /// Number of the exception.
    pub vector: u64,
    /// Its error code; 0 where the processor gives none.
    pub error_code: u64,
    /// Instruction at which it happened.
    pub rip: u64,
    /// Selector of the code segment.
    pub cs: u64,
    /// Flags of the processor.
    pub rflags: u64,
    /// Stack pointer at that instruction.
    pub rsp: u64,
    /// Selector of the stack segment.
    pub ss: u64,
}

/// What [`TrapFrame::general`] holds.
const GENERAL: [RegId; 15] = [
    RegId::RAX,
    RegId::RDX,
    RegId::RCX,
    RegId::RBX,
    RegId::RSI,
    RegId::RDI,
    RegId::RBP,
    RegId::R8,
    RegId::R9,
    RegId::R10,
    RegId::R11,
    RegId::R12,
    RegId::R13,
    RegId::R14,
    RegId::R15,
];

impl TrapFrame {
    /// All registers of the frame, and the control registers that a page fault needs.
    pub fn registers(&self, cr2: u64, cr3: u64) -> [Reg<'static>; 22] {
        let mut all = [Reg::new(RegId::RIP, self.rip); 22];
        let general = GENERAL.into_iter().zip(self.general);
        let rest = [
            (RegId::RIP, self.rip),
            (RegId::CS, self.cs),
            (RegId::RFLAGS, self.rflags),
            (RegId::RSP, self.rsp),
            (RegId::SS, self.ss),
            (RegId::CR2, cr2),
            (RegId::CR3, cr3),
        ];
        all.iter_mut().zip(general.chain(rest)).for_each(|(to, (id, value))| *to = Reg::new(id, value));
        all
    }
}

/// The kernel that died.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel<'a> {
    /// The name it calls itself.
    pub name: &'a [u8],
    /// Release or version text.
    pub version: &'a [u8],
    /// The build-id in its image; kwab refuses symbols of another build.
    pub build_id: &'a [u8],
    /// First address of its image at run time, and the one behind the last.
    pub image: (u64, u64),
    /// Run-time minus link-time address.
    pub offset: u64,
}

/// A piece of memory to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece<'a> {
    /// What it is.
    pub kind: MemoryKind,
    /// The same in words.
    pub label: &'a [u8],
    /// Address of the first byte.
    pub address: u64,
    /// The bytes as they were.
    pub bytes: &'a [u8],
}

/// Everything that is known of a death. What a kernel does not know it leaves out: absent is not zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crash<'a> {
    /// The kernel that died.
    pub kernel: Kernel<'a>,
    /// The kind of death.
    pub kind: CauseKind,
    /// In the kernel's own words.
    pub message: &'a [u8],
    /// Source file and line that gave up.
    pub location: Option<(&'a [u8], u32)>,
    /// The interrupted code, with CR2 and CR3.
    pub trap: Option<(&'a TrapFrame, u64, u64)>,
    /// Lowest address of the stack in use, and the one behind its highest.
    pub stack: Option<(u64, u64)>,
    /// Stack, code around the instruction, objects worth a look.
    pub memory: &'a [Piece<'a>],
    /// The end of the kernel's log.
    pub log: &'a [u8],
}

/// The vector of a page fault, the exception that sets CR2.
const PAGE_FAULT: u64 = 14;

impl Crash<'_> {
    /// Writes the dump. `id` tells dumps apart; `buffer` decides how long sections become, 4 KiB do well.
    ///
    /// # Errors
    /// When the end section is lost. A section that the sink refuses is named there, and the next one is tried.
    pub fn write<S: Sink>(&self, sink: S, buffer: &mut [u8], id: DumpId) -> Result<(), WriteError> {
        let mut writer = Writer::new(sink, buffer, FileHeader::new(id, BootId::default()));
        // What cannot be written costs its own section; the end section counts it.
        let _ = self.identity(&mut writer);
        let _ = self.cause(&mut writer);
        let _ = self.registers(&mut writer);
        let _ = self.memory(&mut writer);
        let _ = self.images(&mut writer);
        let _ = self.log(&mut writer);
        writer.finish().1
    }

    fn identity<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), WriteError> {
        writer.begin(SectionKind::IDENTITY)?;
        writer.put(&Identity {
            kernel_name: Some(self.kernel.name),
            kernel_version: Some(self.kernel.version),
            kernel_build_id: Some(self.kernel.build_id).filter(|id| !id.is_empty()),
            arch: Some(Arch::X86_64),
            reason: Some(Reason::KERNEL_CRASH),
            producer: Some(b"kwab-crash"),
            page_size: Some(4096),
            kernel_offset: Some(self.kernel.offset),
            ..Identity::default()
        })
    }

    fn cause<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), WriteError> {
        writer.begin(SectionKind::CAUSE)?;
        let frame = self.trap.map(|(frame, _, _)| frame);
        writer.put(&Cause {
            kind: Some(self.kind),
            message: Some(self.message),
            file: self.location.map(|(file, _)| file),
            source_line: self.location.map(|(_, line)| line),
            fault_addr: self.trap.filter(|trap| trap.0.vector == PAGE_FAULT).map(|(_, cr2, _)| cr2),
            ip: frame.map(|frame| frame.rip),
            sp: frame.map(|frame| frame.rsp),
            vector: frame.and_then(|frame| u32::try_from(frame.vector).ok()),
            error_code: frame.map(|frame| frame.error_code),
            in_kernel: frame.map(|frame| frame.cs & 3 == 0),
            ..Cause::default()
        })
    }

    fn registers<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), WriteError> {
        let Some((frame, cr2, cr3)) = self.trap else { return Ok(()) };
        writer.begin(SectionKind::REGISTERS)?;
        writer.put(&Registers {
            role: Some(RegisterRole::FAULT),
            arch: Some(Arch::X86_64),
            vector: u32::try_from(frame.vector).ok(),
            error_code: Some(frame.error_code),
            regs: Some(List::new(&frame.registers(cr2, cr3))),
            ..Registers::default()
        })
    }

    /// Bounds of the stack and the pieces of memory, cut to what fits a record.
    fn memory<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), WriteError> {
        writer.begin(SectionKind::STACKS)?;
        if let Some((low, high)) = self.stack {
            writer.put(&StackBounds {
                label: Some(b"boot stack"),
                low: Some(low),
                high: Some(high),
                ..StackBounds::default()
            })?;
        }
        let rip = self.trap.map(|(frame, _, _)| frame.rip);
        let longest = writer.max_bytes().max(1);
        for piece in self.memory {
            let mut address = piece.address;
            for bytes in piece.bytes.chunks(longest) {
                let marked = rip.and_then(|rip| rip.checked_sub(address)).filter(|at| *at < bytes.len() as u64);
                writer.put(&Memory {
                    kind: Some(piece.kind),
                    vaddr: Some(address),
                    bytes: Some(bytes),
                    marked: marked.filter(|_| piece.kind == MemoryKind::CODE),
                    label: Some(piece.label).filter(|label| !label.is_empty()),
                    ..Memory::default()
                })?;
                address = address.wrapping_add(bytes.len() as u64);
            }
        }
        Ok(())
    }

    fn images<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), WriteError> {
        writer.begin(SectionKind::IMAGES)?;
        writer.put(&Image {
            path: Some(self.kernel.name),
            build_id: Some(self.kernel.build_id).filter(|id| !id.is_empty()),
            load_bias: Some(self.kernel.offset),
            start: Some(self.kernel.image.0),
            end: Some(self.kernel.image.1),
            kind: Some(ImageKind::KERNEL),
            ..Image::default()
        })
    }

    fn log<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), WriteError> {
        writer.begin(SectionKind::LOG)?;
        self.log
            .chunks(writer.max_bytes().max(1))
            .try_for_each(|bytes| writer.put(&LogChunk { bytes: Some(bytes), ..LogChunk::default() }))
    }
}
