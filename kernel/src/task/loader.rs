//! Builds the memory of a program from its ELF file: segments, interpreter, stack, vDSO.
//!
//! Nothing here touches the running thread: the result is a new address space and where to begin in it, or an error
//! that leaves the caller as it was.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use kernel_logic::elf::{self, Header, Image, Placement, Segment};
use kernel_logic::stack::{self, Contents, at};
use kernel_logic::vma::{PAGE, Prot, STACK_GUARD, USER_END, VmaFlags};
use linux_abi::Errno;
use machine::addr::UserPage;
use machine::frame::Frame;

use super::Creds;
use crate::fs::io::Sink;
use crate::fs::{File, Headers, MappedFile, PageUse};
use crate::inject::{self, Fault};
use crate::mm::map::MIN_ADDR;
use crate::mm::{
    AddressSpace, Backing, Map, MemoryLimits, TAG_ANON, Vma, image, page_down, page_up, prefault, vma_errno,
};
use crate::options;
use crate::random;
use crate::time::vdso;
use crate::trace;
use crate::trace::span::{Id, span};

/// What is to be executed.
pub struct Program {
    /// The ELF file.
    pub file: Arc<File>,
    /// What its headers say.
    pub headers: Arc<Headers>,
    /// The interpreter, opened.
    pub interpreter: Option<(Arc<File>, Arc<Headers>)>,
}

/// A program in memory.
pub struct Loaded {
    /// The new address space.
    pub mm: Arc<AddressSpace>,
    /// Where to begin.
    pub entry: u64,
    /// The initial stack pointer.
    pub sp: u64,
}

/// What the program is given.
pub struct Given<'a> {
    /// Argument strings without their NULs.
    pub argv: &'a [Vec<u8>],
    /// Environment strings without their NULs.
    pub envp: &'a [Vec<u8>],
    /// The path executed.
    pub execfn: &'a [u8],
    /// The credentials it will have.
    pub creds: &'a Creds,
    /// It must distrust its environment.
    pub secure: bool,
    /// `RLIMIT_STACK` in bytes.
    pub stack_limit: u64,
    /// How large its memory may be.
    pub limits: MemoryLimits,
}

/// The headers of an ELF file that an earlier execution read, if they still hold.
pub fn known_headers(file: &Arc<File>) -> Option<Arc<Headers>> {
    let inode = file.inode();
    let headers = inode.headers()?.get(inode.generation())?;
    if !file.is_noatime() {
        inode.attr().touch_accessed();
    }
    Some(headers)
}

/// Reads and checks the headers of an ELF file that begins with `start`, and keeps them for the next execution.
pub fn read_headers(file: &Arc<File>, start: &[u8]) -> Result<Arc<Headers>, Errno> {
    let _span = span(Id::ExecParse);
    // Before it is read again. Nothing writes to it meanwhile: it is being executed.
    let generation = file.inode().generation();
    let header = Header::parse(start, elf::EM_X86_64).map_err(|_| Errno::ENOEXEC)?;
    let mut phdrs = vec![0; header.phdr_bytes()];
    let got = file.read_at(header.phoff, &mut Sink::kernel(&mut phdrs))?;
    let image = Image::parse(&header, &phdrs[..got]).map_err(|_| Errno::ENOEXEC)?;
    let interpreter = image.interpreter.map(|range| read_interpreter(file, range));
    let headers = Arc::new(Headers::new(generation, header, image, interpreter));
    if let Some(slot) = file.inode().headers() {
        slot.put(&headers);
    }
    Ok(headers)
}

/// The path of the interpreter: `len` bytes from `offset` on, the last of them a NUL, the only one.
fn read_interpreter(file: &Arc<File>, (offset, len): (u64, usize)) -> Result<Vec<u8>, Errno> {
    let mut path = vec![0; len];
    let got = file.read_at(offset, &mut Sink::kernel(&mut path))?;
    if got != len || path.pop() != Some(0) || path.is_empty() || path.contains(&0) {
        return Err(Errno::ENOEXEC);
    }
    Ok(path)
}

/// Builds the program's memory.
pub fn load(program: &Program, given: &Given<'_>) -> Result<Loaded, Errno> {
    let fresh = span(Id::ExecSpace);
    let mm = AddressSpace::new()?;
    drop(fresh);
    let built = {
        let mut map = mm.lock();
        let built = build(&mm, &mut map, program, given)?;
        mm.enter_all(&map)?;
        built
    };
    if image::mode() != image::Mode::Off {
        assemble(&program.file, &program.headers, built.base);
        if let Some((file, headers)) = &program.interpreter {
            assemble(file, headers, built.interpreter_base);
        }
    }
    prefault(&mm, &mut mm.lock(), given.creds);
    Ok(Loaded { mm, entry: built.entry, sp: built.sp })
}

/// Where things are in a program's memory.
struct Built {
    base: u64,
    interpreter_base: u64,
    /// Where to begin, in the interpreter if there is one.
    entry: u64,
    sp: u64,
}

/// Has what 2 MiB leaves can show of a file at `base` in memory, before its pages are mapped. Not under the lock of the
/// map: it may be 2 MiB that are copied.
fn assemble(file: &Arc<File>, headers: &Headers, base: u64) {
    if image::is_for(&headers.image, base) {
        image::assemble(&MappedFile::read_only(file.clone()), &headers.image, base);
    }
}

fn build(mm: &AddressSpace, map: &mut Map, program: &Program, given: &Given<'_>) -> Result<Built, Errno> {
    let random = Offsets::draw();
    let stack_top = USER_END - random.stack * PAGE - random.in_page;
    let gap = given.stack_limit.clamp(MIN_GAP, MAX_GAP);
    map.mmap_top = page_down(USER_END - gap - STACK_SLACK - random.mappings * PAGE);
    let (header, image) = (&program.headers.header, &program.headers.image);
    let base = match header.placement {
        Placement::Fixed => 0,
        Placement::Anywhere => align(PIE_BASE + random.program * PAGE, image.align).wrapping_sub(image.span().0),
    };
    map_image(mm, map, &program.file, image, base)?;
    let entry = header.entry.wrapping_add(base);
    let (mut start, mut interpreter_base) = (entry, 0);
    if let Some((file, headers)) = &program.interpreter {
        let (low, high) = headers.image.span();
        interpreter_base = match headers.header.placement {
            Placement::Fixed => 0,
            Placement::Anywhere => {
                let gap = map.vmas.find_gap(high - low, MIN_ADDR, map.mmap_top).ok_or(Errno::ENOMEM)?;
                gap - low
            }
        };
        map_image(mm, map, file, &headers.image, interpreter_base)?;
        start = headers.header.entry.wrapping_add(interpreter_base);
    }
    let span_end = image.span().1.wrapping_add(base);
    map.brk_start = span_end + random.heap * PAGE;
    map.brk = map.brk_start;
    map_vdso(map)?;
    let aux = auxiliary(map, program, given, base, interpreter_base, entry);
    let sp = build_stack(mm, map, stack_top, program, given, &aux)?;
    if !map.fits(&given.limits) {
        return Err(Errno::ENOMEM);
    }
    map.aux = aux;
    map.exe = Some(program.file.clone());
    Ok(Built { base, interpreter_base, entry: start, sp })
}

fn prefault(mm: &AddressSpace, map: &mut Map, creds: &Creds) {
    if prefault::limit() != 0 {
        let _span = span(Id::ExecPrefault);
        let pages = mm.prefault(map, [creds.uid, creds.euid, creds.gid, creds.egid]);
        trace::event::exec_prefault(map.code.0, pages);
    }
}

/// How far the parts of a program are moved, in pages but for `in_page`, with the entropy of Linux on x86-64
/// (`arch_rnd`, `arch_align_stack`, `arch_randomize_brk`).
#[derive(Clone, Copy, Debug, Default)]
struct Offsets {
    mappings: u64,
    program: u64,
    stack: u64,
    heap: u64,
    /// Bytes, a multiple of 16.
    in_page: u64,
}

impl Offsets {
    /// Nothing moves under `norandmaps`.
    fn draw() -> Self {
        if options::get().norandmaps {
            return Self::default();
        }
        let mut bytes = [0; 16];
        random::fill(&mut bytes);
        let bits = u128::from_le_bytes(bytes);
        let take = |from: u32, count: u32| (bits >> from) as u64 & ((1 << count) - 1);
        Self {
            mappings: take(0, 28),
            program: take(28, 28),
            stack: take(56, 22),
            heap: take(78, 18),
            in_page: take(96, 9) << 4,
        }
    }
}

fn map_image(mm: &AddressSpace, map: &mut Map, file: &Arc<File>, image: &Image, base: u64) -> Result<(), Errno> {
    let _span = span(Id::ExecSegments);
    let (low, high) = image.span();
    let (low, high) = (low.wrapping_add(base), high.wrapping_add(base));
    if high > USER_END || low >= high || low < MIN_ADDR {
        return Err(Errno::ENOMEM);
    }
    for segment in &image.segments {
        map_segment(mm, map, file, segment, base)?;
        if segment.prot.has(Prot::EXEC) && map.code == (0, 0) {
            let start = segment.vaddr.wrapping_add(base);
            map.code = (start, start + segment.file_bytes);
        }
    }
    Ok(())
}

fn map_segment(mm: &AddressSpace, map: &mut Map, file: &Arc<File>, segment: &Segment, base: u64) -> Result<(), Errno> {
    let start = segment.page_start().wrapping_add(base);
    let file_end = segment.file_page_end().wrapping_add(base);
    let end = segment.page_end().wrapping_add(base);
    // Two segments may meet inside a page; as with mmap(MAP_FIXED), the later one has it.
    if !map.vmas.is_free(start, end) {
        map.vmas.remove(start, end, |_| ()).map_err(|_| Errno::ENOMEM)?;
        mm.forget_pages(start, end);
    }
    let flags = VmaFlags::default();
    let every = Prot::READ.with(Prot::WRITE).with(Prot::EXEC);
    let prot = if inject::is(Fault::ElfProtection) { every } else { segment.prot };
    if file_end > start {
        let backing = Backing::File { file: MappedFile::read_only(file.clone()), offset: segment.page_offset() };
        map.vmas.insert(Vma { start, end: file_end, prot, flags, backing }).map_err(vma_errno)?;
        if let Some((from, to)) = segment.tail_to_clear() {
            let (from, to) = (from.wrapping_add(base), to.wrapping_add(base));
            clear_tail(mm, file, segment, start, from, to)?;
        }
    }
    if end > file_end {
        let backing = Backing::Anonymous;
        map.vmas.insert(Vma { start: file_end, end, prot, flags, backing }).map_err(vma_errno)?;
    }
    Ok(())
}

/// Gives the last file page of a segment its own copy, cleared from where the file's part ends.
fn clear_tail(
    mm: &AddressSpace,
    file: &Arc<File>,
    segment: &Segment,
    start: u64,
    from: u64,
    to: u64,
) -> Result<(), Errno> {
    let page = page_down(from);
    let index = (segment.page_offset() + (page - start)) / PAGE;
    let frame = Frame::alloc().map_err(|_| Errno::ENOMEM)?;
    match file.inode().page(index, PageUse::Read) {
        Ok(cached) => frame.copy_page_from(&cached),
        // The file ends before this page does: what it lacks is zeros, or a fault later, as the header lied.
        Err(Errno::ENXIO) => frame.zero(0, PAGE as usize),
        // What the file has there is not known: the program would begin with zeros for data.
        Err(_) => return Err(Errno::ENOMEM),
    }
    frame.zero((from - page) as usize, (to - from) as usize);
    let at = UserPage::new(page).ok_or(Errno::ENOMEM)?;
    mm.map_segment_page(at, frame, segment.prot)
}

fn map_vdso(map: &mut Map) -> Result<(), Errno> {
    if !vdso::exists() {
        return Ok(());
    }
    let len = vdso::PAGES * PAGE;
    let start = map.vmas.find_gap(len, MIN_ADDR, map.mmap_top).ok_or(Errno::ENOMEM)?;
    // What the kernel writes is only ever read, as on Linux; breakpoints may be put into the code.
    let data = VmaFlags::NO_WRITE.with(VmaFlags::NO_EXEC);
    for (index, prot, flags) in [(0, Prot::READ, data), (1, Prot::READ.with(Prot::EXEC), VmaFlags::default())] {
        let at = start + index * PAGE;
        map.vmas
            .insert(Vma { start: at, end: at + PAGE, prot, flags, backing: Backing::Vdso { index } })
            .map_err(vma_errno)?;
    }
    map.vdso = start + PAGE;
    Ok(())
}

fn auxiliary(
    map: &Map,
    program: &Program,
    given: &Given<'_>,
    base: u64,
    interpreter_base: u64,
    entry: u64,
) -> Vec<(u64, u64)> {
    let info = machine::cpu::info();
    let creds = given.creds;
    let mut aux = Vec::with_capacity(24);
    if map.vdso != 0 {
        aux.push((at::SYSINFO_EHDR, map.vdso));
    }
    aux.extend_from_slice(&[
        (at::MINSIGSTKSZ, info.min_signal_stack as u64),
        (at::HWCAP, info.hwcap[0]),
        (at::PAGESZ, PAGE),
        (at::CLKTCK, crate::time::USER_HZ),
        (at::PHDR, program.headers.image.phdr_vaddr.wrapping_add(base)),
        (at::PHENT, elf::PHDR_BYTES as u64),
        (at::PHNUM, u64::from(program.headers.header.phnum)),
        (at::BASE, interpreter_base),
        (at::FLAGS, 0),
        (at::ENTRY, entry),
        (at::UID, u64::from(creds.uid)),
        (at::EUID, u64::from(creds.euid)),
        (at::GID, u64::from(creds.gid)),
        (at::EGID, u64::from(creds.egid)),
        (at::SECURE, u64::from(given.secure)),
        (at::HWCAP2, info.hwcap[1]),
        (at::RSEQ_FEATURE_SIZE, 20),
        (at::RSEQ_ALIGN, 32),
    ]);
    aux
}

fn build_stack(
    mm: &AddressSpace,
    map: &mut Map,
    top: u64,
    program: &Program,
    given: &Given<'_>,
    aux: &[(u64, u64)],
) -> Result<u64, Errno> {
    let _span = span(Id::ExecStack);
    let mut seed = [0; 16];
    random::fill(&mut seed);
    let what =
        Contents { argv: given.argv, envp: given.envp, execfn: given.execfn, platform: b"x86_64", random: seed, aux };
    let limit = usize::try_from(given.stack_limit).unwrap_or(usize::MAX);
    let built = stack::build(top, limit, &what).ok_or(Errno::E2BIG)?;
    let mut prot = Prot::READ.with(Prot::WRITE);
    if program.headers.image.exec_stack {
        prot = prot.with(Prot::EXEC);
    }
    let start = page_down(built.sp - INITIAL_STACK.min(given.stack_limit / 2));
    let flags = VmaFlags::GROWS_DOWN.with(VmaFlags::STACK);
    let end = page_up(top).ok_or(Errno::ENOMEM)?;
    // A file may say of its segments that they lie here.
    if !map.vmas.is_free(start.saturating_sub(STACK_GUARD), end) {
        return Err(Errno::ENOMEM);
    }
    map.vmas.insert(Vma { start, end, prot, flags, backing: Backing::Anonymous }).map_err(vma_errno)?;
    let first = page_down(built.sp);
    for page in (first..end).step_by(PAGE as usize) {
        let frame = Frame::alloc_zeroed().map_err(|_| Errno::ENOMEM)?;
        let from = page.max(built.sp);
        let part = &built.bytes[(from - built.sp) as usize..((page + PAGE).min(top) - built.sp) as usize];
        frame.write((from - page) as usize, part);
        let at = UserPage::new(page).ok_or(Errno::ENOMEM)?;
        mm.map_segment_page(at, frame, prot)?;
    }
    trace::event::exec_prefault(first, [0, (end - first) / PAGE]);
    map.args = built.args;
    map.envs = built.envs;
    map.stack_start = built.sp;
    Ok(built.sp)
}

impl AddressSpace {
    /// Maps a private frame where nothing is mapped, in a space that no thread runs yet.
    fn map_segment_page(&self, page: UserPage, frame: Frame, prot: Prot) -> Result<(), Errno> {
        self.map_private(page, frame, prot, TAG_ANON).map_err(|_| Errno::ENOMEM)
    }
}

fn align(addr: u64, to: u64) -> u64 {
    addr & !(to - 1)
}

/// Where Linux puts position-independent programs when nothing is random.
const PIE_BASE: u64 = 0x5555_5555_4000;
/// Bounds of the room kept for the stack to grow.
const MIN_GAP: u64 = 128 << 20;
const MAX_GAP: u64 = USER_END / 6 * 5;
/// Beyond the limit: the guard, and the 16 GiB the stack may be moved by.
const STACK_SLACK: u64 = (1 << 20) + (16 << 30);
/// Mapped below the initial stack pointer at once.
const INITIAL_STACK: u64 = 128 << 10;
