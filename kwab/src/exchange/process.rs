//! Writes the death of a process as a dump, whichever core it was read from.
//!
//! The readers of core formats fill a [`DeadProcess`] and lend its memory ([`CapturedMemory`]). Stacks and code around
//! the pointers of each thread become records of their own, which every reader of dumps takes first; then comes all
//! memory. Runs of zeros are told but not stored.

use std::io;
use std::ops::Range;

use kwab_format::record::{
    Arch, CauseKind, Identity, Image, ImageKind, Memory, MemoryKind, Note, NoteKind, Reason, Reg, RegId, RegisterRole,
    Registers, Source, Task, Text, TextKind, Vma,
};
use kwab_format::{List, SectionKind};

use crate::import::crash::Crash;
use crate::import::emit::DumpWriter;
use crate::import::made::Told;
use crate::import::segment::Out;
use crate::model::Death;

/// What a core says about a process.
#[derive(Debug, Default)]
pub(super) struct DeadProcess {
    /// What it died of; without a signal or exception it was taken alive.
    pub death: Death,
    /// Its instruction set; `None` where the format has no number for it.
    pub arch: Option<Arch>,
    /// Its threads, the dead one first.
    pub threads: Vec<ProcessThread>,
    /// Its mappings in order of address.
    pub mappings: Vec<ProcessMapping>,
    /// Its program and libraries.
    pub images: Vec<ProcessImage>,
    /// Texts that the core holds, each with its name.
    pub texts: Vec<(String, Vec<u8>)>,
    /// Name and version of the system.
    pub system: (Option<String>, Option<String>),
    /// Parent of the process.
    pub parent: Option<u32>,
    /// When it died, nanoseconds since 1970.
    pub wall_ns: Option<i64>,
    /// What the core claims and does not have.
    pub missing: Vec<String>,
    /// Things a person should know.
    pub remarks: Vec<String>,
    /// The name of the format.
    pub dialect: &'static str,
}

/// A thread with its registers.
#[derive(Debug, Default)]
pub(super) struct ProcessThread {
    /// Number of the thread.
    pub tid: u32,
    /// Its name; empty where the core has none.
    pub name: Vec<u8>,
    /// Address of its next instruction.
    pub ip: Option<u64>,
    /// Its stack pointer.
    pub sp: Option<u64>,
    /// Registers with their values.
    pub registers: Vec<(RegId, u64)>,
    /// Registers that have no number, by their names.
    pub named: Vec<(&'static str, u64)>,
    /// Floating-point and vector state as `XSAVE` leaves it.
    pub extended: Vec<u8>,
}

impl ProcessThread {
    /// A register of the thread.
    fn register(&self, id: RegId) -> Option<u64> {
        self.registers.iter().find(|(known, _)| *known == id).map(|(_, value)| *value)
    }

    /// The system call it is in.
    fn syscall(&self) -> Option<i64> {
        self.register(RegId::ORIG_RAX).map(|number| number as i64).filter(|number| *number >= 0)
    }
}

/// A mapping of the process.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ProcessMapping {
    /// Address of the first byte.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Bit 0 read, bit 1 write, bit 2 execute; `None` where the core does not say.
    pub prot: Option<u32>,
    /// The mapped file and the offset in it.
    pub file: Option<(Vec<u8>, u64)>,
    /// What else it is: `[stack]`.
    pub name: Option<&'static str>,
}

/// A loaded program, library or vDSO.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ProcessImage {
    /// Path of the file as the core names it.
    pub path: Vec<u8>,
    /// First address, and the one behind the last.
    pub range: (u64, u64),
    /// What it is to the process.
    pub kind: ImageKind,
    /// GNU build-id, if its first page is in the core.
    pub build_id: Option<Vec<u8>>,
    /// Run-time minus link-time address.
    pub bias: Option<u64>,
    /// Entry point at run time.
    pub entry: Option<u64>,
    /// Version that the image states.
    pub version: Option<String>,
}

/// Memory of a process, as its core has it.
pub(super) trait CapturedMemory {
    /// The captured ranges, in order of address and without overlap.
    fn ranges(&self) -> Vec<Range<u64>>;

    /// Fills `out` from an address on; how many bytes there are.
    fn read(&self, addr: u64, out: &mut [u8]) -> io::Result<usize>;
}

/// Bytes below a stack pointer that may still be in use (System V ABI, "red zone"), and of a stack above it.
const RED_ZONE: u64 = 128;
const STACK: u64 = 64 << 10;
/// Bytes of code before and from the instruction on.
const CODE: (u64, u64) = (64, 128);
/// Bytes of all these pieces together: a core can name more threads than it has memory.
const MOST_PIECES: u64 = 16 << 20;
/// Bytes of a record with memory.
const PIECE: usize = 64 << 10;
/// Zeros that are told and not stored are a multiple of this.
const PAGE: usize = 4096;
/// Bytes of a text that are kept.
const MOST_TEXT: usize = 1 << 20;

/// Writes the dump of the process.
pub(super) fn write(
    process: &DeadProcess,
    memory: &dyn CapturedMemory,
    source: &str,
    out: &mut DumpWriter<Out>,
) -> io::Result<Told> {
    let died = process.death.signal.is_some() || process.death.exception.is_some();
    identity(process, died, out);
    // Our own core files show a kernel as a process too.
    let in_kernel = process.death.ip.is_some_and(|ip| ip >> 63 == 1);
    let death = Death {
        kind: Some(match (died, in_kernel) {
            (true, false) => CauseKind::FATAL_SIGNAL,
            (true, true) => CauseKind::EXCEPTION,
            (false, _) => CauseKind::LIVE,
        }),
        in_kernel: Some(in_kernel),
        syscall: process.threads.first().and_then(ProcessThread::syscall),
        ..process.death.clone()
    };
    out.put(SectionKind::CAUSE, &death.record());
    for thread in &process.threads {
        of_thread(process, thread, out);
    }
    pieces(process, memory, out)?;
    for mapping in &process.mappings {
        of_mapping(process, mapping, out);
    }
    for image in &process.images {
        of_image(process, image, out);
    }
    notes(process, source, out);
    all_memory(process.death.pid, memory, out)?;
    Ok(Told { death: died.then_some(death), missing: process.missing.clone(), ..Told::default() })
}

fn identity(process: &DeadProcess, died: bool, out: &mut DumpWriter<Out>) {
    let (name, version) = &process.system;
    let record = Identity {
        kernel_name: name.as_ref().map(String::as_bytes),
        kernel_version: version.as_ref().map(String::as_bytes),
        arch: process.arch,
        wall_ns: process.wall_ns,
        reason: Some(if died { Reason::PROCESS_CRASH } else { Reason::LIVE }),
        producer: Some(concat!("kwab ", env!("CARGO_PKG_VERSION"), " import").as_bytes()),
        page_size: Some(PAGE as u32),
        ..Identity::default()
    };
    out.put(SectionKind::IDENTITY, &record);
}

fn of_thread(process: &DeadProcess, thread: &ProcessThread, out: &mut DumpWriter<Out>) {
    let mut regs: Vec<Reg<'_>> = thread.registers.iter().map(|(id, value)| Reg::new(*id, *value)).collect();
    let named = thread.named.iter();
    regs.extend(named.map(|(name, value)| Reg { value: Some(*value), name: Some(name.as_bytes()), ..Reg::default() }));
    let first = process.threads.first().is_some_and(|first| first.tid == thread.tid);
    let pid = process.death.pid.or(Some(thread.tid));
    let record = Registers {
        // What the other threads do is not what the dead one did when it was last in the kernel.
        role: Some(if first { RegisterRole::FAULT } else { RegisterRole::SWITCHED_OUT }),
        arch: process.arch,
        pid,
        tid: Some(thread.tid),
        regs: Some(List::new(&regs)),
        extended: Some(thread.extended.as_slice()).filter(|bytes| !bytes.is_empty()),
        ..Registers::default()
    };
    out.put(SectionKind::REGISTERS, &record);
    let comm = process.death.comm.as_deref().filter(|_| Some(thread.tid) == pid);
    let record = Task {
        pid,
        tid: Some(thread.tid),
        ppid: process.parent,
        comm: Some(thread.name.as_slice()).filter(|name| !name.is_empty()).or(comm),
        cmdline: process.death.cmdline.as_deref(),
        user_ip: thread.ip,
        user_sp: thread.sp,
        syscall: thread.syscall(),
        ..Task::default()
    };
    out.put(SectionKind::TASKS, &record);
}

/// The stacks and the code of the threads, as far as they are captured.
fn pieces(process: &DeadProcess, memory: &dyn CapturedMemory, out: &mut DumpWriter<Out>) -> io::Result<()> {
    let mut left = MOST_PIECES;
    for thread in &process.threads {
        let (Some(ip), Some(sp)) = (thread.ip, thread.sp) else { continue };
        let sp = sp & !7;
        let code = (ip.saturating_sub(CODE.0) & !7, ip.saturating_add(CODE.1), MemoryKind::CODE);
        let stack = (sp.saturating_sub(RED_ZONE), sp.saturating_add(STACK), MemoryKind::USER_STACK);
        for (start, end, kind) in [code, stack] {
            if end - start > left {
                return Ok(());
            }
            let mut bytes = vec![0; (end - start) as usize];
            // What is unmapped below the pointer is left out, not what follows it.
            let skip = if memory.read(start, &mut bytes[..1])? == 0 { (sp.max(start) - start) as usize } else { 0 };
            let skip = if kind == MemoryKind::CODE { 0 } else { skip };
            let found = memory.read(start + skip as u64, &mut bytes[skip..])?;
            if found == 0 {
                continue;
            }
            left -= found as u64;
            let vaddr = start + skip as u64;
            let record = Memory {
                kind: Some(kind),
                vaddr: Some(vaddr),
                pid: process.death.pid,
                tid: Some(thread.tid),
                bytes: bytes.get(skip..skip + found),
                marked: ip.checked_sub(vaddr).filter(|at| kind == MemoryKind::CODE && *at < found as u64),
                ..Memory::default()
            };
            out.put(SectionKind::STACKS, &record);
        }
    }
    Ok(())
}

fn of_mapping(process: &DeadProcess, mapping: &ProcessMapping, out: &mut DumpWriter<Out>) {
    let (path, offset) = mapping.file.as_ref().map(|(path, offset)| (path.as_slice(), *offset)).unzip();
    let record = Vma {
        pid: process.death.pid,
        start: Some(mapping.start),
        end: Some(mapping.end),
        prot: mapping.prot,
        path,
        file_offset: offset,
        name: mapping.name.map(str::as_bytes),
        ..Vma::default()
    };
    out.put(SectionKind::MEMORY_MAP, &record);
}

fn of_image(process: &DeadProcess, image: &ProcessImage, out: &mut DumpWriter<Out>) {
    let record = Image {
        path: Some(image.path.as_slice()).filter(|path| !path.is_empty()),
        build_id: image.build_id.as_deref(),
        load_bias: image.bias,
        start: Some(image.range.0),
        end: Some(image.range.1),
        pid: process.death.pid,
        kind: Some(image.kind),
        entry: image.entry,
        version: image.version.as_deref().map(str::as_bytes),
        ..Image::default()
    };
    out.put(SectionKind::IMAGES, &record);
}

fn notes(process: &DeadProcess, source: &str, out: &mut DumpWriter<Out>) {
    let (name, dialect) = (Some(source.as_bytes()), Some(process.dialect.as_bytes()));
    out.put(SectionKind::IDENTITY, &Source { name, dialect, ..Source::default() });
    let missing = process.missing.iter().map(|text| (NoteKind::DEFECT, text));
    for (kind, text) in missing.chain(process.remarks.iter().map(|text| (NoteKind::REMARK, text))) {
        let record = Note { kind: Some(kind), text: Some(text.as_bytes()), ..Note::default() };
        out.put(SectionKind::NOTES, &record);
    }
    for (name, bytes) in &process.texts {
        let head = format!("{name}\n");
        let parts = [head.as_bytes(), &bytes[..bytes.len().min(MOST_TEXT)]].concat();
        let record = Text { kind: Some(TextKind::CONSOLE), bytes: Some(&parts), ..Text::default() };
        out.put(SectionKind::KEPT, &record);
    }
}

fn all_memory(pid: Option<u32>, memory: &dyn CapturedMemory, out: &mut DumpWriter<Out>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut run = ZeroRun { pid, start: 0, length: 0 };
    for range in memory.ranges() {
        let mut at = range.start;
        while at < range.end {
            let wanted = PIECE.min(usize::try_from(range.end - at).unwrap_or(PIECE));
            let read = memory.read(at, &mut buffer[..wanted])?;
            if read == 0 {
                break;
            }
            let mut done = 0;
            while done < read {
                let zeros = buffer[done..read].chunks(PAGE).take_while(|page| page.iter().all(|byte| *byte == 0));
                let zeros: usize = zeros.map(<[u8]>::len).sum();
                run.add(at + done as u64, zeros as u64, out);
                done += zeros;
                let full = buffer[done..read].chunks(PAGE).take_while(|page| page.iter().any(|byte| *byte != 0));
                let full: usize = full.map(<[u8]>::len).sum();
                if full > 0 {
                    let (vaddr, bytes) = (Some(at + done as u64), buffer.get(done..done + full));
                    let kind = Some(MemoryKind::PAGE);
                    out.put(SectionKind::MEMORY, &Memory { kind, vaddr, pid, bytes, ..Memory::default() });
                }
                done += full;
            }
            out.check()?;
            at += read as u64;
        }
    }
    run.close(out);
    Ok(())
}

/// Pages of zeros that follow each other.
struct ZeroRun {
    pid: Option<u32>,
    start: u64,
    length: u64,
}

impl ZeroRun {
    fn add(&mut self, start: u64, length: u64, out: &mut DumpWriter<Out>) {
        if length == 0 {
            return;
        }
        if self.start.wrapping_add(self.length) != start || self.length == 0 {
            self.close(out);
            self.start = start;
        }
        self.length += length;
    }

    fn close(&mut self, out: &mut DumpWriter<Out>) {
        if self.length > 0 {
            let record = Memory {
                kind: Some(MemoryKind::PAGE),
                vaddr: Some(self.start),
                pid: self.pid,
                zeros: Some(self.length),
                ..Memory::default()
            };
            out.put(SectionKind::MEMORY, &record);
        }
        self.length = 0;
    }
}

/// The name of a signal.
pub(super) fn signal_name(signal: u32) -> Option<Vec<u8>> {
    linux_abi::Signal::new(signal.into()).map(|signal| signal.to_string().into_bytes())
}

/// Whether a signal with this `si_code` carries an address: the kernel's own reports of a fault do (sigaction(2)).
pub(super) fn tells_address(signal: u32, code: i32) -> bool {
    /// `si_code` of a signal that the kernel sends without an address.
    const SI_KERNEL: i32 = 0x80;
    [4, 5, 7, 8, 11].contains(&signal) && code > 0 && code != SI_KERNEL
}

/// Whether a signal ends a process with a core, so that it is a death and not how the core was asked for.
pub(super) fn is_deadly(signal: u32) -> bool {
    Crash::is_fatal_signal(i64::from(signal))
}
