//! Reads the ELF core of a process: what Linux writes when a signal ends one (`fs/binfmt_elf.c`), or gdb's `gcore`.
//!
//! The notes of a thread follow its `NT_PRSTATUS`; the first thread is the one that died. Mappings are the segments,
//! with the files that `NT_FILE` names. A file whose ELF header was captured tells its build-id and load bias.

use std::collections::HashSet;
use std::fs::File;

use kwab_format::record::{Arch, ImageKind, RegId};
use object::elf::{FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};

use super::file_memory::{Claim, FileMemory};
use super::process::{
    CapturedMemory as _, DeadProcess, ProcessImage, ProcessMapping, ProcessThread, is_deadly, signal_name,
    tells_address,
};
use crate::capture::CaptureError;
use crate::capture::core_file::{
    NT_PRSTATUS, Note, PRSTATUS_REGISTERS, PT_LOAD, Segment, half, is_of_program, long, note, note_segments, segments,
    word,
};
use crate::decode::USER_REGS;
use crate::model::Death;
use crate::units;

const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_FILE: u32 = 0x4649_4c45;
const NT_SIGINFO: u32 = 0x5349_4749;
const NT_X86_XSTATE: u32 = 0x202;
/// The auxiliary vector (Linux, `include/uapi/linux/auxvec.h`).
pub(super) const AT_BASE: u64 = 7;
pub(super) const AT_ENTRY: u64 = 9;
pub(super) const AT_SYSINFO_EHDR: u64 = 33;
/// The page of calls of an old ABI (Linux, `Documentation/arch/x86/x86_64/mm.rst`).
const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;
/// Bytes of an image in which its headers and notes are looked for.
pub(super) const HEAD: usize = 16 << 10;
/// Bytes of a mapped file's path that are kept, as `PATH_MAX` has it.
pub(super) const MOST_PATH: usize = 4096;
/// Bytes of paths that mappings name together.
pub(super) const MOST_PATHS: usize = 16 << 20;
/// Images of a process that are looked at.
pub(super) const MOST_IMAGES: usize = 4096;
/// Bytes of the state of vector registers: AMX has 11 KiB.
const MOST_EXTENDED: usize = 64 << 10;

/// Whether the core is that of a process: without physical addresses.
///
/// # Errors
/// [`CaptureError`] when it is not a core of x86-64.
pub(super) fn is_process(file: &File) -> Result<bool, CaptureError> {
    Ok(is_of_program(&segments(file, file.metadata()?.len())?))
}

/// Reads headers and notes; the memory stays in the file.
///
/// # Errors
/// [`CaptureError`] when it is not a core of x86-64, or cannot be read.
pub(super) fn read(file: &File) -> Result<(DeadProcess, FileMemory<'_>), CaptureError> {
    let length = file.metadata()?.len();
    let segments = segments(file, length)?;
    let mut process = DeadProcess { arch: Some(Arch::X86_64), dialect: "elf-core", ..DeadProcess::default() };
    let memory = FileMemory::of(file, length, claims(&segments));
    if memory.lost > 0 {
        process.missing.push(format!("{} of memory: the core is cut", units::memory(memory.lost)));
    }
    let mut notes = CoreNotes::default();
    for bytes in note_segments(file, length, &segments)? {
        notes.take(&bytes);
    }
    process.mappings = mappings(&segments, &notes);
    process.images = images(&notes, &process.mappings, &memory)?;
    if notes.threads.is_empty() {
        process.missing.push("registers: the file has no notes with them".to_owned());
    }
    let dead = notes.threads.first();
    process.death = notes.death(dead);
    process.parent = notes.parent;
    process.threads = notes.threads;
    Ok((process, memory))
}

/// What the segments say to hold.
fn claims(segments: &[Segment]) -> Vec<Claim> {
    let loads = segments.iter().filter(|one| one.kind == PT_LOAD);
    loads.map(|one| Claim { start: one.vaddr, offset: one.offset, length: one.length }).collect()
}

/// What the notes of a core say.
#[derive(Debug, Default)]
struct CoreNotes {
    threads: Vec<ProcessThread>,
    /// Signal that the first thread's status names.
    current: u32,
    signal: Option<SignalInfo>,
    pid: Option<u32>,
    parent: Option<u32>,
    comm: Vec<u8>,
    cmdline: Vec<u8>,
    auxv: Vec<(u64, u64)>,
    /// Mapped files: first address, the one behind the last, offset in the file, path.
    files: Vec<(u64, u64, u64, Vec<u8>)>,
}

/// The signal with what the kernel tells of it.
#[derive(Debug, Clone, Copy)]
struct SignalInfo {
    number: u32,
    code: i32,
    addr: u64,
}

impl CoreNotes {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some((Note { name, kind, body }, rest)) = note(bytes) {
            bytes = rest;
            match (name, kind) {
                (b"CORE", NT_PRSTATUS) => self.status(body),
                (b"CORE", NT_PRPSINFO) => self.names(body),
                // The first is that of the thread that died.
                (b"CORE", NT_SIGINFO) if self.signal.is_none() && body.len() >= 12 => {
                    let (number, code) = (word(body, 0), word(body, 8).cast_signed());
                    self.signal = Some(SignalInfo { number, code, addr: long(body, 16) });
                }
                (b"CORE", NT_AUXV) => {
                    let pairs = body.chunks_exact(16).map(|pair| (long(pair, 0), long(pair, 8)));
                    self.auxv = pairs.take_while(|(kind, _)| *kind != 0).collect();
                }
                (b"CORE", NT_FILE) => self.files = files(body),
                (b"LINUX", NT_X86_XSTATE) if body.len() <= MOST_EXTENDED => {
                    if let Some(thread) = self.threads.last_mut() {
                        thread.extended = body.to_vec();
                    }
                }
                _ => {}
            }
        }
    }

    fn status(&mut self, body: &[u8]) {
        let Some(values) = body.get(PRSTATUS_REGISTERS..PRSTATUS_REGISTERS + 8 * USER_REGS.len()) else { return };
        let values = values.chunks_exact(8).map(|value| long(value, 0));
        if self.threads.is_empty() {
            self.current = u32::from(half(body, 12));
        }
        let registers: Vec<_> = USER_REGS.into_iter().zip(values).collect();
        let of = |wanted: RegId| registers.iter().find(|(id, _)| *id == wanted).map(|(_, value)| *value);
        let (ip, sp) = (of(RegId::RIP), of(RegId::RSP));
        self.threads.push(ProcessThread { tid: word(body, 32), ip, sp, registers, ..ProcessThread::default() });
    }

    fn names(&mut self, body: &[u8]) {
        let until = |from: usize, length: usize| {
            let field = body.get(from..from + length).unwrap_or_default();
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
            field[..end].trim_ascii_end().to_vec()
        };
        if body.len() >= 136 {
            (self.pid, self.parent) = (Some(word(body, 24)), Some(word(body, 28)));
            (self.comm, self.cmdline) = (until(40, 16), until(56, 80));
        }
    }

    fn auxv(&self, wanted: u64) -> Option<u64> {
        self.auxv.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value)
    }

    fn death(&self, dead: Option<&ProcessThread>) -> Death {
        let told = self.signal.filter(|signal| signal.number != 0);
        let number = told.map_or(self.current, |signal| signal.number);
        let signal = Some(number).filter(|number| is_deadly(*number));
        let fault = told.filter(|it| signal.is_some() && tells_address(number, it.code));
        Death {
            pid: self.pid.or_else(|| dead.map(|thread| thread.tid)),
            tid: dead.map(|thread| thread.tid),
            comm: Some(self.comm.clone()).filter(|name| !name.is_empty()),
            cmdline: Some(self.cmdline.clone()).filter(|name| !name.is_empty()),
            signal,
            signal_name: signal.and_then(signal_name),
            signal_code: told.filter(|_| signal.is_some()).map(|signal| signal.code.into()),
            fault_addr: fault.map(|signal| signal.addr),
            ip: dead.and_then(|thread| thread.ip),
            sp: dead.and_then(|thread| thread.sp),
            ..Death::default()
        }
    }
}

/// `NT_FILE`: a count, the bytes of a page, three words for each mapping, then the paths, each with a NUL.
fn files(body: &[u8]) -> Vec<(u64, u64, u64, Vec<u8>)> {
    let (count, page) = (long(body, 0), long(body, 8));
    let rows = body.get(16..).unwrap_or_default();
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(rows.len() / 24);
    let (rows, paths) = rows.split_at(count * 24);
    let rows = rows.chunks_exact(24).map(|row| (long(row, 0), long(row, 8), long(row, 16)));
    rows.zip(paths.split(|byte| *byte == 0))
        .map(|((start, end, offset), path)| {
            (start, end, offset.saturating_mul(page), path[..path.len().min(MOST_PATH)].to_vec())
        })
        .collect()
}

fn mappings(segments: &[Segment], notes: &CoreNotes) -> Vec<ProcessMapping> {
    let mut files: Vec<_> = notes.files.iter().collect();
    files.sort_by_key(|file| file.0);
    let sp = notes.threads.iter().find(|thread| Some(thread.tid) == notes.pid).and_then(|it| it.sp);
    let vdso = notes.auxv(AT_SYSINFO_EHDR);
    let loads = segments.iter().filter(|segment| segment.kind == PT_LOAD && segment.memory > 0);
    // Every process of Linux on x86-64 has it, in the kernel's half: it is not a mapping of the process.
    let loads = loads.filter(|segment| segment.vaddr != VSYSCALL);
    let mut left = MOST_PATHS;
    let mut mappings: Vec<ProcessMapping> = loads
        .map(|segment| {
            let (start, end) = (segment.vaddr, segment.vaddr.saturating_add(segment.memory));
            let behind = files.partition_point(|file| file.0 <= start);
            let file = behind.checked_sub(1).and_then(|number| files.get(number)).filter(|file| start < file.1);
            let holds = |addr: Option<u64>| addr.is_some_and(|addr| (start..end).contains(&addr));
            // One row of the note can be that of every segment.
            let told = file.filter(|file| file.3.len() <= left);
            left -= told.map_or(0, |file| file.3.len());
            let name = match file {
                Some(_) if told.is_none() => Some("[path left out]"),
                None if vdso == Some(start) => Some("[vdso]"),
                None if holds(sp) => Some("[stack]"),
                _ => None,
            };
            let flags = segment.flags;
            ProcessMapping {
                start,
                end,
                prot: Some((flags >> 2 & 1) | (flags & 2) | (flags & 1) << 2),
                file: told.map(|file| (file.3.clone(), file.2.saturating_add(start - file.0))),
                name,
            }
        })
        .collect();
    mappings.sort_by_key(|mapping| mapping.start);
    mappings
}

/// The files that begin with an ELF header, the vDSO among them.
fn images(
    notes: &CoreNotes,
    mappings: &[ProcessMapping],
    memory: &FileMemory<'_>,
) -> Result<Vec<ProcessImage>, CaptureError> {
    let mut images: Vec<ProcessImage> = Vec::new();
    let mut seen = HashSet::new();
    for (start, end, offset, path) in &notes.files {
        // The same beginning again is the same image.
        if *offset == 0 && images.len() < MOST_IMAGES && seen.insert(*start) {
            images.push(ProcessImage { path: path.clone(), range: (*start, *end), ..ProcessImage::default() });
        } else if let Some(image) =
            images.iter_mut().rev().take(4).find(|image| image.path == *path && *start >= image.range.1)
        {
            image.range.1 = *end;
        }
    }
    if let Some(start) = notes.auxv(AT_SYSINFO_EHDR) {
        let end = mappings.iter().find(|mapping| mapping.start == start).map(|mapping| mapping.end);
        let (path, kind) = (b"[vdso]".to_vec(), ImageKind::VDSO);
        images.extend(end.map(|end| ProcessImage { path, range: (start, end), kind, ..ProcessImage::default() }));
    }
    let executable = mappings.iter().filter(|it| it.prot.is_some_and(|prot| prot & 4 != 0));
    // In order, as the mappings are.
    let code: Vec<u64> = executable.map(|it| it.start).collect();
    let mut head = vec![0; HEAD];
    let mut known = Vec::new();
    for mut image in images {
        let (start, end) = image.range;
        let wanted = HEAD.min(usize::try_from(end.saturating_sub(start)).unwrap_or(HEAD));
        let found = memory.read(start, &mut head[..wanted])?;
        let is_elf = found >= 4 && head.starts_with(b"\x7fELF");
        let executable = notes.auxv(AT_ENTRY).is_some_and(|entry| (start..end).contains(&entry));
        // Data files are mapped too; one whose beginning is not in the core may be anything.
        let has_code = || code.get(code.partition_point(|at| *at < start)).is_some_and(|at| *at < end);
        if !(is_elf || found < 4 && has_code()) {
            continue;
        }
        if image.kind != ImageKind::VDSO {
            image.kind = match (executable, notes.auxv(AT_BASE) == Some(start)) {
                (true, _) => ImageKind::EXECUTABLE,
                (_, true) => ImageKind::INTERPRETER,
                _ => ImageKind::LIBRARY,
            };
        }
        if is_elf {
            headers(&mut image, &head[..found]);
        }
        known.push(image);
    }
    Ok(known)
}

/// Fills in what the ELF header at the beginning of an image says.
pub(super) fn headers(image: &mut ProcessImage, head: &[u8]) {
    let Ok(header) = FileHeader64::<Endianness>::parse(head) else { return };
    let Ok(endian) = header.endian() else { return };
    let Ok(segments) = header.program_headers(endian, head) else { return };
    let first = segments.iter().find(|segment| segment.p_type(endian) == elf::PT_LOAD);
    let bias =
        first.map(|first| image.range.0.wrapping_sub(first.p_vaddr(endian).wrapping_sub(first.p_offset(endian))));
    image.bias = bias;
    let entry = header.e_entry(endian);
    image.entry = bias.filter(|_| entry != 0).map(|bias| bias.wrapping_add(entry));
    for segment in segments {
        let Ok(Some(mut notes)) = segment.notes(endian, head) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
                image.build_id = Some(note.desc().to_vec()).filter(|id| (4..=64).contains(&id.len()));
                return;
            }
        }
    }
}
