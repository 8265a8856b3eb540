//! Writes an ELF core file (System V ABI, gABI chapter 5; Linux `fs/binfmt_elf.c`): registers as threads, memory by
//! address.
//!
//! Each thread ([`super::threads`]) has an `NT_PRSTATUS` note, the dead one first, because that is the one debuggers
//! show, and an `NT_PRPSINFO` note where its name is known. Each captured range becomes a `PT_LOAD`; so does all memory
//! of a machine, where the dump has it ([`super::machine`]). Images whose files `symbols` has are named by `NT_FILE`
//! and shown with ELF header and notes, which is how drgn and elfutils know what was loaded where. What the kernel is
//! says a note ([`super::about`]).

use std::io::{self, Write};

use kwab_format::record::{Arch, ImageKind};
use object::elf::{self, FileHeader64, Ident, NoteHeader64, NoteType, ProgramFlags, ProgramHeader64, ProgramType};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U16, U32, U64};

use super::about;
use super::machine::{self, Machine};
use super::ranges::{Counted, PAGE, add, cut, page_runs, ranges, write_run};
use super::threads::{CoreThread, threads};
use crate::analysis::{Postmortem, TraceFrame, stacks};
use crate::decode::USER_REGS;
use crate::memory::Ram;
use crate::model::Case;
use crate::symbols::{LoadedImage, Symbols};
use crate::units;

/// Why no core file can be written.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// There are no registers, so there is no thread.
    #[error("the dump holds no registers; a core file needs at least one thread")]
    NoRegisters,
    /// The layout of registers is only known for x86_64.
    #[error("core files can be written for x86_64 only, and this dump is of {0}")]
    Arch(String),
    /// A program header count has 16 bits.
    #[error("the dump holds {0} separate ranges of memory; a core file has room for 65534")]
    TooManyRanges(usize),
    /// It claims more memory than a file of its length holds.
    #[error("the dump claims {} of memory, which is more than one of its length holds", units::bytes(*.0))]
    TooMuch(u64),
    /// Writing to the output failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Bytes of `struct elf_prstatus`, and where its registers begin.
const PRSTATUS: usize = 336;
const PRSTATUS_REGS: usize = 112;
/// Bytes of `struct elf_prpsinfo`.
const PRPSINFO: usize = 136;
/// Who defines the notes, as Linux writes it.
const OWNER: &[u8] = b"CORE\0";
/// Type of the notes about the kernel.
const ABOUT: NoteType = NoteType(0);
/// The physical address of what has none (as in Linux's `/proc/kcore`).
const NO_PADDR: u64 = u64::MAX;
/// Readable, writable and executable: the dump does not always say what is what.
const RIGHTS: ProgramFlags = ProgramFlags(elf::PF_R.0 | elf::PF_W.0 | elf::PF_X.0);
/// Kinds of auxiliary values (Linux, `include/uapi/linux/auxvec.h`).
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_PAGESZ: u64 = 6;
const AT_ENTRY: u64 = 9;
/// Bytes of the ELF header and of a program header.
const EHDR: u64 = size_of::<FileHeader64<LE>>() as u64;
const PHDR: u64 = size_of::<ProgramHeader64<LE>>() as u64;
/// Program headers beyond 0xfffe need another form (`PN_XNUM`), which few readers know.
const MOST_RANGES: usize = 0xfffe;

/// Writes the core file; `ram` is the physical memory of the same dump.
///
/// # Errors
/// [`CoreError`] when the dump has no registers of x86_64, or when writing fails.
pub fn elf_core(case: &Case<'_>, ram: &Ram<'_>, symbols: &Symbols, out: &mut dyn Write) -> Result<(), CoreError> {
    let arch = case.identities.first().and_then(|identity| identity.arch);
    if let Some(other) = arch.filter(|arch| *arch != Arch::X86_64) {
        return Err(CoreError::Arch(other.name().unwrap_or("an unknown processor").to_owned()));
    }
    let death = Postmortem::of(case);
    let threads = threads(case, &death);
    if threads.is_empty() {
        return Err(CoreError::NoRegisters);
    }
    let (mapped, entry) = (images(case, symbols, &death), entry_of(case, &death));
    let mut ranges = ranges(case, &death);
    for image in &mapped {
        add(&mut ranges, image.start, &image.head);
        image.notes.iter().for_each(|(start, bytes)| add(&mut ranges, *start, bytes));
    }
    let runs = page_runs(&ranges);
    if runs.len() >= MOST_RANGES {
        return Err(CoreError::TooManyRanges(runs.len()));
    }
    let room = MOST_RANGES - 1 - runs.len();
    let machine = match ram.has_sections() {
        true => Machine::of(case, ram, room).map_err(CoreError::TooMuch)?,
        false => Machine::default(),
    };
    if machine.blocks.len() > room {
        return Err(CoreError::TooManyRanges(runs.len() + machine.blocks.len()));
    }
    cut(&mut ranges, machine.shown.iter().map(|part| part.vaddr..part.vaddr.saturating_add(part.length)));
    let runs = page_runs(&ranges);
    if runs.len() + machine.shown.len() >= MOST_RANGES {
        return Err(CoreError::TooManyRanges(runs.len() + machine.shown.len()));
    }
    let count = (runs.len() + machine.shown.len() + 1) as u16;
    let notes_at = EHDR + PHDR * u64::from(count);
    let all_notes = |out: &mut dyn Write| {
        notes(&threads, &death, (&mapped, entry), out)?;
        match &machine.info {
            Some(info) => note(out, about::VMCOREINFO, ABOUT, info.as_bytes()),
            None if !death.in_kernel => Ok(()),
            None => {
                let bias = symbols.loaded().iter().find(|image| image.pid.is_none()).map(|image| image.bias);
                note(out, about::KWAB, ABOUT, about::lines(case, bias).as_bytes())
            }
        }
    };
    let mut length = Counted(0);
    all_notes(&mut length)?;
    out.write_all(bytes_of(&header(count)))?;
    out.write_all(bytes_of(&program_header(elf::PT_NOTE, elf::PF_R, notes_at, (0, 0), length.0, 1)))?;
    let mut at = notes_at + length.0;
    let paddr = if machine.blocks.is_empty() { 0 } else { NO_PADDR };
    let mut loads: Vec<ProgramHeader64<LE>> = Vec::with_capacity(usize::from(count));
    for run in &runs {
        let length = run.end - run.start;
        loads.push(program_header(elf::PT_LOAD, RIGHTS, at, (run.start, paddr), length, 1));
        at += length.next_multiple_of(PAGE);
    }
    let shown = machine.shown.iter();
    loads.extend(
        shown.map(|part| {
            program_header(elf::PT_LOAD, RIGHTS, at + part.offset, (part.vaddr, part.paddr), part.length, 1)
        }),
    );
    // gABI: in order of their virtual addresses. makedumpfile takes the first for the direct map, so what is mapped
    // nowhere comes last.
    loads.sort_by_key(|load| (machine::is_unmapped(load.p_vaddr.get(LE)), load.p_vaddr.get(LE)));
    loads.iter().try_for_each(|load| out.write_all(bytes_of(load)))?;
    all_notes(out)?;
    for run in &runs {
        write_run(&ranges, run, |addr, out| symbols.read(addr, death.code_pid(), out), out)?;
        // elfutils reads to the end of the page, whatever the program header says.
        let length = run.end - run.start;
        out.write_all(&vec![0; (length.next_multiple_of(PAGE) - length) as usize])?;
    }
    machine.write(ram, out)?;
    Ok(())
}

/// What a debugger should show of the core file: the threads with their numbers and the stacks that kwab walks for
/// them.
#[must_use]
pub fn core_stacks(case: &Case<'_>, symbols: &Symbols) -> Vec<(u32, Vec<TraceFrame>)> {
    let death = Postmortem::of(case);
    let stack = |thread: &CoreThread<'_>| (thread.id, stacks::of_values(case, symbols, &death, &thread.values()));
    threads(case, &death).iter().map(stack).collect()
}

/// An image that was loaded, and whose file is at hand.
struct Mapped {
    /// Whether it is the program itself, or the kernel.
    is_program: bool,
    /// The file, where it was found: a debugger reads from it what the dump does not hold.
    path: Vec<u8>,
    /// Where the first byte of the file is, or would be.
    start: u64,
    /// Pieces of it: first address, address behind the last, page of the file.
    pieces: Vec<(u64, u64, u64)>,
    entry: Option<u64>,
    /// Its ELF header and program headers.
    head: Vec<u8>,
    /// Its notes, by address; the build-id among them tells readers that the file is the right one.
    notes: Vec<(u64, Vec<u8>)>,
}

/// The images of the address space that the core file shows. An image without a file is left out: gdb takes addresses
/// of a file that it cannot open for unreadable, even where the program given to it has them.
fn images(case: &Case<'_>, symbols: &Symbols, death: &Postmortem) -> Vec<Mapped> {
    let kernel = |kind: Option<ImageKind>| matches!(kind, Some(ImageKind::KERNEL | ImageKind::MODULE));
    let visible = case.images.iter().filter(|image| {
        if death.in_kernel { kernel(image.kind) } else { image.pid == death.pid && !kernel(image.kind) }
    });
    let mapped = visible.filter_map(|image| {
        let LoadedImage { image: file, bias, .. } = symbols.image_at(image.start?, death.code_pid())?;
        let path = file.path()?.canonicalize().ok()?.into_os_string().into_encoded_bytes();
        let mut pieces: Vec<(u64, u64, u64)> = file
            .loaded()
            .filter_map(|(link, offset, length)| {
                let start = link.wrapping_add(*bias);
                let end = start.checked_add(length)?.checked_next_multiple_of(PAGE)?;
                Some((start / PAGE * PAGE, end, offset / PAGE))
            })
            .collect();
        pieces.sort_unstable();
        let (first, _, page) = *pieces.first()?;
        let start = first.checked_sub(page.checked_mul(PAGE)?)?;
        let mut head = vec![0; PAGE as usize];
        let found = file.head(&mut head);
        head.truncate(found);
        let notes = note_segments(&head)
            .filter_map(|(link, length)| {
                let mut bytes = vec![0; usize::try_from(length.min(PAGE)).ok()?];
                let found = file.read(link, &mut bytes);
                bytes.truncate(found);
                Some((link.wrapping_add(*bias), bytes))
            })
            .collect();
        if page > 0 {
            // The header is not loaded. Readers know a file by it, so it is shown where it would be.
            pieces.insert(0, (start, start + PAGE, 0));
            with_own_segment(&mut head, start.wrapping_sub(*bias));
        }
        // gdb moves a program by the difference of its two entries.
        let linked = head.get(24..32).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let entry = image.entry.or_else(|| Some(linked.filter(|entry| *entry != 0)?.wrapping_add(*bias)));
        let is_program = death.in_kernel || image.kind == Some(ImageKind::EXECUTABLE);
        Some(Mapped { is_program, path, start, pieces, entry, head, notes })
    });
    mapped.collect()
}

/// Puts a segment for the header itself in front of the program headers, where there is room behind them: readers look
/// for the one that holds them.
fn with_own_segment(head: &mut [u8], link: u64) {
    let count = head.get(56..58).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
    let end = (EHDR + PHDR * u64::from(count)) as usize;
    let usual = head.get(32..40) == Some(&EHDR.to_le_bytes()) && end + PHDR as usize <= head.len();
    if !usual || count == 0 {
        return;
    }
    let table = head[EHDR as usize..end].to_vec();
    let own = program_header(elf::PT_LOAD, elf::PF_R, 0, (link, 0), PAGE, PAGE);
    let own = bytes_of(&own);
    let room = &mut head[EHDR as usize..end + PHDR as usize];
    room[..own.len()].copy_from_slice(own);
    room[own.len()..].copy_from_slice(&table);
    head[56..58].copy_from_slice(&(count + 1).to_le_bytes());
}

/// Link address and size of each `PT_NOTE` of an ELF header.
fn note_segments(head: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let long = |at: usize| Some(u64::from_le_bytes(head.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let table = long(32).and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX);
    let count = head.get(56..58).map_or(0, |b| usize::from(u16::from_le_bytes([b[0], b[1]])));
    (0..count).filter_map(move |number| {
        let at = table.checked_add(number * PHDR as usize)?;
        let kind = head.get(at..at.checked_add(4)?)?;
        (kind == elf::PT_NOTE.0.to_le_bytes()).then_some(())?;
        Some((long(at + 16)?, long(at + 32)?))
    })
}

/// `NT_AUXV`: where the program's headers and its first instruction are, so that readers find its load address. The
/// entry is known without its file too (`entry`); what a library has would move the program that gdb is given.
fn auxv(images: &[Mapped], entry: Option<u64>) -> Vec<u8> {
    let mut values = vec![(AT_PAGESZ, PAGE)];
    let program = images.iter().find(|image| image.is_program);
    if let Some(image) = program {
        let half = |at: usize| image.head.get(at..at + 2).map(|b| u64::from(u16::from_le_bytes([b[0], b[1]])));
        let offset = image.head.get(32..40).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        if let (Some(offset), Some(count)) = (offset, half(56)) {
            values.extend([(AT_PHDR, image.start.wrapping_add(offset)), (AT_PHENT, PHDR), (AT_PHNUM, count)]);
        }
    }
    values.extend(program.and_then(|image| image.entry).or(entry).map(|entry| (AT_ENTRY, entry)));
    values.push((0, 0));
    values.into_iter().flat_map(|(kind, value)| [kind.to_le_bytes(), value.to_le_bytes()]).flatten().collect()
}

/// `NT_FILE`: which files are mapped where.
fn files(images: &[Mapped]) -> Vec<u8> {
    let pieces: Vec<_> =
        images.iter().flat_map(|image| image.pieces.iter().map(move |piece| (piece, &image.path))).collect();
    let mut out: Vec<u8> = [pieces.len() as u64, PAGE].into_iter().flat_map(u64::to_le_bytes).collect();
    for ((start, end, page), _) in &pieces {
        out.extend([start, end, page].into_iter().flat_map(|value| value.to_le_bytes()));
    }
    for (_, path) in &pieces {
        out.extend(path.iter().copied().filter(|byte| *byte != 0).chain([0]));
    }
    out
}

/// Where the program that died begins, as the dump says it.
fn entry_of(case: &Case<'_>, death: &Postmortem) -> Option<u64> {
    let mut images = case.images.iter().filter(|_| !death.in_kernel);
    images.find(|image| image.pid == death.pid && image.kind == Some(ImageKind::EXECUTABLE))?.entry
}

fn notes(
    threads: &[CoreThread<'_>],
    death: &Postmortem,
    (images, entry): (&[Mapped], Option<u64>),
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut named = false;
    let program = if death.program.is_empty() { "kernel" } else { &death.program };
    let base = file_name(program);
    let own = threads.first().and_then(name);
    // The program of a kernel is its image.
    let image = images.first().filter(|_| death.in_kernel).and_then(|image| str::from_utf8(&image.path).ok());
    let image = image.map(file_name);
    let process = death.pid.filter(|pid| *pid != 0).or_else(|| threads.first().map(|thread| thread.id));
    let process = process.unwrap_or(0);
    let first = prpsinfo(process, own.or(image).unwrap_or(base), program);
    for (number, thread) in threads.iter().enumerate() {
        note(out, OWNER, elf::NT_PRSTATUS, &prstatus(thread, death))?;
        if number == 0 {
            note(out, OWNER, elf::NT_PRPSINFO, &first)?;
            note(out, OWNER, elf::NT_AUXV, &auxv(images, entry))?;
            note(out, OWNER, elf::NT_FILE, &files(images))?;
        } else if let Some(name) = name(thread) {
            note(out, OWNER, elf::NT_PRPSINFO, &prpsinfo(thread.id, name, name))?;
            named = true;
        }
    }
    // One stands beside each thread; gdb takes the last one for the name of the program, which it compares with that of
    // the file that it was given.
    if named || (own.is_some() && image.is_some()) {
        note(out, OWNER, elf::NT_PRPSINFO, &prpsinfo(process, image.or(own).unwrap_or(base), program))?;
    }
    Ok(())
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn prstatus(thread: &CoreThread<'_>, death: &Postmortem) -> Vec<u8> {
    let mut out = vec![0; PRSTATUS];
    // A kernel has no signal; what gdb shows for a bad access is SIGSEGV, for anything else SIGABRT.
    let signal = death.signal.unwrap_or(if death.fault_addr.is_some() { 11 } else { 6 });
    let signal = i32::try_from(signal).unwrap_or(6);
    out[..4].copy_from_slice(&signal.to_le_bytes());
    out[12..14].copy_from_slice(&(signal as u16).to_le_bytes());
    out[32..36].copy_from_slice(&thread.id.to_le_bytes());
    for (index, id) in USER_REGS.into_iter().enumerate() {
        let at = PRSTATUS_REGS + index * 8;
        out[at..at + 8].copy_from_slice(&thread.value(id).to_le_bytes());
    }
    out
}

/// The name of a thread, as far as it is text.
fn name<'a>(thread: &CoreThread<'a>) -> Option<&'a str> {
    str::from_utf8(thread.name).ok().filter(|name| !name.is_empty())
}

fn prpsinfo(id: u32, short: &str, whole: &str) -> Vec<u8> {
    let mut out = vec![0; PRPSINFO];
    out[1] = b'R';
    out[24..28].copy_from_slice(&id.to_le_bytes());
    for (from, length, text) in [(40, 15, short), (56, 79, whole)] {
        let bytes = &text.as_bytes()[..text.len().min(length)];
        out[from..from + bytes.len()].copy_from_slice(bytes);
    }
    out
}

fn note(out: &mut dyn Write, owner: &[u8], kind: NoteType, body: &[u8]) -> io::Result<()> {
    let header = NoteHeader64 {
        n_namesz: U32::new(LE, owner.len() as u32),
        n_descsz: U32::new(LE, body.len() as u32),
        n_type: U32::new(LE, kind),
    };
    for part in [bytes_of(&header), owner, body] {
        out.write_all(part)?;
        out.write_all(&[0; 3][..part.len().next_multiple_of(4) - part.len()])?;
    }
    Ok(())
}

/// The header of a core file whose program headers follow it directly.
fn header(program_headers: u16) -> FileHeader64<LE> {
    FileHeader64 {
        e_ident: Ident {
            magic: elf::ELFMAG,
            class: elf::ELFCLASS64,
            data: elf::ELFDATA2LSB,
            version: elf::EV_CURRENT,
            // The notes have Linux's layout; lldb opens no file that does not say so.
            os_abi: elf::ELFOSABI_GNU,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(LE, elf::ET_CORE),
        e_machine: U16::new(LE, elf::EM_X86_64),
        e_version: U32::new(LE, elf::EV_CURRENT.0.into()),
        e_entry: U64::default(),
        e_phoff: U64::new(LE, EHDR),
        e_shoff: U64::default(),
        e_flags: U32::default(),
        e_ehsize: U16::new(LE, EHDR as u16),
        e_phentsize: U16::new(LE, PHDR as u16),
        e_phnum: U16::new(LE, program_headers),
        e_shentsize: U16::new(LE, size_of::<elf::SectionHeader64<LE>>() as u16),
        e_shnum: U16::default(),
        e_shstrndx: U16::default(),
    }
}

fn program_header(
    kind: ProgramType,
    flags: ProgramFlags,
    offset: u64,
    (address, paddr): (u64, u64),
    size: u64,
    align: u64,
) -> ProgramHeader64<LE> {
    ProgramHeader64 {
        p_type: U32::new(LE, kind),
        p_flags: U32::new(LE, flags),
        p_offset: U64::new(LE, offset),
        p_vaddr: U64::new(LE, address),
        p_paddr: U64::new(LE, paddr),
        p_filesz: U64::new(LE, size),
        p_memsz: U64::new(LE, if kind == elf::PT_LOAD { size } else { 0 }),
        p_align: U64::new(LE, align),
    }
}
