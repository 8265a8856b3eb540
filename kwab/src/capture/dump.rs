//! Writes a guest that was read through the monitor as a dump.

use std::io::{self, Write};

use kwab_format::record::{
    Arch, Cause, CauseKind, Cpu, CpuState, Identity, Image, ImageKind, Memory, MemoryKind, Note, NoteKind, Reason, Reg,
    RegId, RegisterRole, Registers, Source, Stamp,
};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind};

use super::registers::Processor;
use super::vmcore::{Load, Stored, Vmcore};
use super::{Nmi, Snapshot, Via, linux, ours};
use crate::model::bulk::{self, BulkMemory};
use crate::model::emit::DumpWriter;

/// Memory of a processor's code or stack.
#[derive(Debug)]
pub struct MemoryPiece {
    /// Number of the processor whose registers these are.
    pub cpu: u32,
    /// Code, not stack.
    pub is_code: bool,
    /// Address of the first byte.
    pub start: u64,
    /// Address behind the last byte that was wanted.
    pub wanted: u64,
    /// What could be read.
    pub bytes: Vec<u8>,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of physical memory, zeros included.
    pub bytes: u64,
    /// Bytes of pages that hold only zeros.
    pub zeros: u64,
    /// Memory that the file claims and that could not be read.
    pub lost: Vec<String>,
}

pub(super) fn write(snapshot: &Snapshot, id: u64, wall_ns: i64, out: &mut dyn Write) -> io::Result<Written> {
    let mut boot = [0; 16];
    boot[..8].copy_from_slice(&id.to_le_bytes());
    let mut writer = DumpWriter::new(out, FileHeader::new(DumpId(id), BootId(boot)));
    let written = put(snapshot, Some(wall_ns), &mut writer)?;
    writer.finish()?;
    Ok(written)
}

pub(super) fn put<W: Write>(
    snapshot: &Snapshot,
    wall_ns: Option<i64>,
    writer: &mut DumpWriter<W>,
) -> io::Result<Written> {
    identity(writer, snapshot, wall_ns);
    // The one that does something says most about a hang.
    let chosen = snapshot.processors.iter().find(|one| !one.halted).or(snapshot.processors.first());
    let death = snapshot.linux.as_ref().and_then(|linux| linux.death.as_ref());
    let ours_died = snapshot.ours.as_ref().and_then(|ours| Some((ours, ours.death.as_ref()?)));
    if let Some((ours, death)) = ours_died {
        ours::put_death(writer, ours, death);
    }
    match (death, chosen) {
        _ if ours_died.is_some() => {}
        (Some(death), _) => death.records().for_each(|(section, record)| writer.put_raw(section, record)),
        (None, Some(chosen)) => cause(writer, snapshot, chosen),
        (None, None) => {}
    }
    for processor in &snapshot.processors {
        let is_chosen = chosen == Some(processor) && death.is_none();
        let role = if is_chosen { RegisterRole::FAULT } else { RegisterRole::STOPPED };
        match ours_died {
            // What they do meanwhile belongs to the crash path.
            Some((_, death)) => of_cpu(writer, processor, death.cpu == processor.number),
            None => of_processor(writer, processor, role, running(snapshot, processor)),
        }
    }
    for piece in &snapshot.pieces {
        of_memory(writer, snapshot, piece);
    }
    if let Some(linux) = &snapshot.linux {
        linux::put_threads(writer, linux);
        linux::put_log(writer, 0, &linux.log);
    }
    if let Some(ours) = &snapshot.ours {
        ours::put_calls(writer, ours);
        ours::put_flight(writer, ours);
        ours::put_threads(writer, ours);
        ours::put_locks(writer, ours);
        linux::put_log(writer, ours.log.0, &ours.log.1);
    }
    let of_linux = snapshot.linux.iter().flat_map(|linux| &linux.missing);
    let of_ours = snapshot.ours.iter().flat_map(|ours| &ours.missing);
    for text in snapshot.missing.iter().chain(of_linux).chain(of_ours) {
        defect(writer, text);
    }
    let dialect: &[u8] = match snapshot.via {
        Via::Monitor => b"qmp",
        Via::Gdb => b"gdb",
        Via::Core => b"vmcore",
    };
    writer.put(SectionKind::NOTES, &Source { dialect: Some(dialect), ..Source::default() });
    writer.flush_all();
    match &snapshot.core {
        Some(core) => all_memory(writer, core),
        None => Ok(Written::default()),
    }
}

/// Whether it is of a file, not of a running guest.
fn from_file(snapshot: &Snapshot) -> bool {
    snapshot.via == Via::Core
}

fn identity<W: Write>(writer: &mut DumpWriter<W>, snapshot: &Snapshot, wall_ns: Option<i64>) {
    let told = |name: &str| snapshot.core.as_ref().and_then(|core| core.told(name));
    let ours = snapshot.ours.as_ref();
    let told_release = told("OSRELEASE");
    let release = told_release.or_else(|| ours?.release.as_deref());
    let offset = told("KERNELOFFSET").and_then(|text| u64::from_str_radix(text, 16).ok());
    let offset = offset.or_else(|| ours?.offset);
    let note = snapshot.kernel.as_ref().and_then(|kernel| kernel.build_id.as_ref());
    let said = told("BUILD-ID").and_then(of_hex);
    let build_id = note.map(|(id, _)| id.as_slice()).or(said.as_deref());
    let file = from_file(snapshot);
    let died = snapshot.linux.as_ref().is_some_and(|linux| linux.death.is_some());
    let our_reason = ours.and_then(|ours| Some(ours.death.as_ref()?.reason));
    let reason: &[u8] = match snapshot.via {
        Via::Monitor => b"captured through QEMU's monitor",
        Via::Gdb => b"captured through GDB's remote protocol",
        Via::Core => b"taken from a core of the machine",
    };
    writer.put(
        SectionKind::IDENTITY,
        &Identity {
            kernel_name: told("KERNEL").or(ours.map(|_| "kwab")).or(told_release.map(|_| "Linux")).map(str::as_bytes),
            kernel_version: release.map(str::as_bytes),
            kernel_build_id: build_id,
            kernel_offset: offset,
            direct_map: ours.and_then(|ours| ours.direct_map),
            mono_ns: ours.and_then(|ours| ours.now),
            arch: Some(Arch::X86_64),
            wall_ns: wall_ns.filter(|_| !file),
            reason: our_reason.or(Some(if died {
                Reason::KERNEL_CRASH
            } else if file {
                Reason::LIVE
            } else {
                Reason::HANG
            })),
            reason_text: Some(reason),
            producer: Some(concat!("kwab capture ", env!("CARGO_PKG_VERSION")).as_bytes()),
            cpus: u32::try_from(snapshot.processors.len()).ok().filter(|count| *count > 0),
            page_size: Some(4096),
            hardware: Some(snapshot.qemu.as_bytes()).filter(|name| !name.is_empty()),
            ..Identity::default()
        },
    );
    if let Some(kernel) = &snapshot.kernel {
        let record = Image {
            kind: Some(ImageKind::KERNEL),
            build_id,
            build_id_at: note.map(|(_, at)| *at),
            load_bias: offset,
            start: Some(kernel.start),
            end: Some(kernel.end),
            ..Image::default()
        };
        writer.put(SectionKind::IMAGES, &record);
    }
}

/// The bytes of a build-id in hexadecimal, of the length of one.
fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let is_id = digits.len().is_multiple_of(2) && (16..=128).contains(&digits.len());
    let is_id = is_id && digits.iter().all(u8::is_ascii_hexdigit);
    is_id.then(|| digits.chunks_exact(2).map(byte).collect()).flatten()
}

fn defect<W: Write>(writer: &mut DumpWriter<W>, text: &str) {
    let note = Note { kind: Some(NoteKind::DEFECT), text: Some(text.as_bytes()), ..Note::default() };
    writer.put(SectionKind::NOTES, &note);
}

/// Pages of a core that cannot be read.
#[derive(Default)]
struct Lost {
    pages: u64,
    /// The first of them, and why.
    first: Option<(u64, String)>,
}

/// Writes all memory of a core, a page at a time.
fn all_memory<W: Write>(writer: &mut DumpWriter<W>, core: &Vmcore) -> io::Result<Written> {
    let (mut memory, mut lost) = (BulkMemory::default(), Lost::default());
    for load in &core.loads {
        match load.stored {
            Stored::Zeros => memory.put_zeros(writer, load.paddr, load.length),
            Stored::At(_) | Stored::Page(_) => stored(writer, core, load, &mut memory, &mut lost)?,
        }
        writer.check()?;
    }
    let totals = memory.finish(writer);
    let mut written = Written { bytes: totals.bytes, zeros: totals.zeros, lost: Vec::new() };
    if let Some((at, why)) = lost.first {
        written.lost.push(format!("{} pages of memory that cannot be read, the first at {at:#x}: {why}", lost.pages));
    }
    written.lost.iter().for_each(|text| defect(writer, text));
    Ok(written)
}

fn stored<W: Write>(
    writer: &mut DumpWriter<W>,
    core: &Vmcore,
    load: &Load,
    memory: &mut BulkMemory,
    lost: &mut Lost,
) -> io::Result<()> {
    const PAGE: u64 = bulk::PAGE as u64;
    const READ: usize = 256 * bulk::PAGE;
    let mut buffer = vec![0; READ.min(usize::try_from(load.length).unwrap_or(READ))];
    let mut done = 0;
    while done < load.length {
        let wanted = READ.min(usize::try_from(load.length - done).unwrap_or(READ));
        let read = core.read(load.paddr + done, &mut buffer[..wanted])?;
        for (at, page) in buffer[..read].chunks(bulk::PAGE).enumerate() {
            memory.put(writer, load.paddr + done + (at * bulk::PAGE) as u64, page);
        }
        done += read as u64;
        if read < wanted {
            let at = load.paddr + done;
            lost.pages += 1;
            lost.first.get_or_insert_with(|| (at, core.why(at)));
            done += PAGE - at % PAGE;
        }
        writer.check()?;
    }
    Ok(())
}

fn cause<W: Write>(writer: &mut DumpWriter<W>, snapshot: &Snapshot, processor: &Processor) {
    let message: &[u8] = match snapshot.nmi {
        _ if from_file(snapshot) => b"taken from a core of the machine",
        Nmi::NotSent => b"captured from outside; no non-maskable interrupt was sent",
        Nmi::Refused => b"captured from outside; this machine has no non-maskable interrupt",
        Nmi::Ignored | Nmi::Taken => b"captured from outside; the guest did not act on a non-maskable interrupt",
    };
    let record = Cause {
        kind: Some(CauseKind::LIVE),
        message: Some(message),
        ip: Some(processor.ip()),
        sp: Some(processor.sp()),
        in_kernel: Some(!processor.in_user),
        stamp: Stamp { cpu: Some(processor.number), ..Stamp::default() },
        ..Cause::default()
    };
    writer.put(SectionKind::CAUSE, &record);
}

/// The number of the thread on a processor, where the memory says it; idle ones have the number 0 on all.
fn running(snapshot: &Snapshot, processor: &Processor) -> Option<u32> {
    if let Some(ours) = &snapshot.ours {
        return ours::running_on(ours, processor.number).map(|thread| thread.tid);
    }
    let mut threads = snapshot.linux.iter().flat_map(|linux| &linux.threads).map(|(thread, _)| thread);
    let thread = threads.find(|thread| thread.runs && thread.cpu == Some(processor.number))?;
    Some(thread.tid).filter(|tid| *tid != 0)
}

fn of_processor<W: Write>(writer: &mut DumpWriter<W>, processor: &Processor, role: RegisterRole, tid: Option<u32>) {
    let regs: Vec<Reg<'_>> = processor.registers.iter().map(|(id, value)| Reg::new(*id, *value)).collect();
    let record = Registers {
        role: Some(role),
        tid,
        arch: Some(Arch::X86_64),
        regs: Some(List::new(&regs)),
        stamp: Stamp { cpu: Some(processor.number), ..Stamp::default() },
        ..Registers::default()
    };
    writer.put(SectionKind::REGISTERS, &record);
    of_cpu(writer, processor, false);
}

fn of_cpu<W: Write>(writer: &mut DumpWriter<W>, processor: &Processor, dumps: bool) {
    let state = if processor.halted { CpuState::IDLE } else { CpuState::STOPPED };
    let record = Cpu {
        number: Some(processor.number),
        state: Some(if dumps { CpuState::DUMPING } else { state }),
        interrupts_on: Some(processor.interrupts_on()),
        page_table_root: Some(processor.get(RegId::CR3)).filter(|root| *root != 0),
        ..Cpu::default()
    };
    writer.put(SectionKind::REGISTERS, &record);
}

fn of_memory<W: Write>(writer: &mut DumpWriter<W>, snapshot: &Snapshot, piece: &MemoryPiece) {
    let processor = snapshot.processors.iter().find(|one| one.number == piece.cpu);
    let kind = match (piece.is_code, processor.is_some_and(|one| one.in_user)) {
        (true, _) => MemoryKind::CODE,
        (false, true) => MemoryKind::USER_STACK,
        (false, false) => MemoryKind::KERNEL_STACK,
    };
    let label = format!("cpu {}", piece.cpu);
    let wanted = piece.wanted.saturating_sub(piece.start);
    let marked = processor.filter(|_| piece.is_code).map(|one| one.ip().saturating_sub(piece.start));
    let record = Memory {
        kind: Some(kind),
        vaddr: Some(piece.start),
        bytes: Some(&piece.bytes),
        wanted: Some(wanted).filter(|wanted| *wanted > piece.bytes.len() as u64),
        marked,
        label: Some(label.as_bytes()),
        ..Memory::default()
    };
    writer.put(SectionKind::STACKS, &record);
}
