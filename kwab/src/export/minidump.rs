//! Writes the death of a process as a minidump, as Breakpad and Crashpad do on Linux.
//!
//! Threads ([`super::threads`]), modules with their build-ids, all captured memory, and the files of `/proc` that
//! readers look into, made from what the dump says. The structures are those of `minidump-common`. A minidump is of a
//! process: the death of a kernel is refused.

use std::io::{self, Write};

use kwab_format::record::{Arch, ImageKind, RegId};
use minidump_common::errors::ExceptionCodeLinux;
use minidump_common::format::{
    CONTEXT_AMD64, CONTEXT_ARM64, CPU_INFORMATION, CvSignature, MINIDUMP_DIRECTORY, MINIDUMP_EXCEPTION,
    MINIDUMP_EXCEPTION_STREAM, MINIDUMP_HEADER, MINIDUMP_LOCATION_DESCRIPTOR as Location, MINIDUMP_MEMORY_DESCRIPTOR,
    MINIDUMP_MISC_INFO, MINIDUMP_MODULE, MINIDUMP_SIGNATURE, MINIDUMP_STREAM_TYPE as StreamType, MINIDUMP_SYSTEM_INFO,
    MINIDUMP_THREAD, MINIDUMP_THREAD_NAME, MINIDUMP_VERSION, PlatformId, ProcessorArchitecture as Processor,
};
use scroll::ctx::{SizeWith, TryIntoCtx};
use scroll::{Endian, LE, Pwrite as _};

use super::ranges::{Counted, ranges};
use super::threads::{ARM64_PC, ARM64_SP, CoreThread, threads};
use crate::analysis::Postmortem;
use crate::model::Case;

/// Why no minidump can be written.
#[derive(Debug, thiserror::Error)]
pub enum MinidumpError {
    /// There are no registers, so there is no thread.
    #[error("the dump holds no registers; a minidump needs at least one thread")]
    NoRegisters,
    /// It is not a process that died.
    #[error("a minidump is of a process, and this is the death of a kernel; --to elf-core writes it")]
    Kernel,
    /// The layout of registers is not known.
    #[error("minidumps can be written for x86_64 and aarch64, and this dump is of {0}")]
    Arch(String),
    /// The process is one of another system, which means other numbers by its exceptions.
    #[error("minidumps can be written for Linux, and this dump is of {0}")]
    System(String),
    /// An offset has 32 bits.
    #[error("the dump holds more than the 4 GiB of memory that a minidump has room for")]
    TooLong,
    /// Writing to the output failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Streams that are written.
const STREAMS: u32 = 10;
/// Bytes of the header and of a row of the directory.
const HEADER: u32 = 32;
const ROW: u32 = 12;
/// Parts of a context that are filled in: control, integer, and of x86-64 segments and floating point.
const AMD64_PARTS: u32 = 0x0010_0007;
const AMD64_FLOATING: u32 = 8;
const ARM64_PARTS: u32 = 0x0040_0003;
/// `flags1` of the misc info: it has the number of the process.
const HAS_PROCESS_ID: u32 = 1;

/// Writes the minidump.
///
/// # Errors
/// [`MinidumpError`] when the dump is not one of a process on Linux with registers, or when writing fails.
pub fn minidump(case: &Case<'_>, out: &mut dyn Write) -> Result<(), MinidumpError> {
    let death = Postmortem::of(case);
    let identity = case.identities.first();
    let system = identity.and_then(|identity| identity.kernel_name).map(String::from_utf8_lossy);
    let arch = identity.and_then(|identity| identity.arch);
    if let Some(other) = system.as_deref().filter(|name| matches!(*name, "Windows" | "macOS" | "iOS")) {
        return Err(MinidumpError::System(other.to_owned()));
    }
    let processor = match arch {
        Some(Arch::X86_64) => Processor::PROCESSOR_ARCHITECTURE_AMD64,
        Some(Arch::AARCH64) => Processor::PROCESSOR_ARCHITECTURE_ARM64,
        other => {
            let name = other.and_then(Arch::name).unwrap_or("an unknown processor");
            return Err(MinidumpError::Arch(name.to_owned()));
        }
    };
    if death.in_kernel {
        return Err(MinidumpError::Kernel);
    }
    let threads = threads(case, &death);
    if threads.is_empty() {
        return Err(MinidumpError::NoRegisters);
    }
    let memory = ranges(case, &death);
    let mut file = Blob { base: HEADER + ROW * STREAMS, bytes: Vec::new(), directory: Vec::new() };
    file.system(case, processor)?;
    file.process(case, &death)?;
    file.names(&threads)?;
    file.modules(case, &death)?;
    // The two lists are last, and behind them what may be long: it is written as it is made. Where it lies follows from
    // the lengths.
    let exception = MINIDUMP_EXCEPTION_STREAM::size_with(&LE);
    let lists = 8 + 48 * threads.len() + 16 * memory.len();
    let mut at = u64::from(file.end()?) + (exception + lists) as u64;
    let mut contexts = Vec::with_capacity(threads.len());
    let size = context_size(processor);
    for _ in &threads {
        contexts.push(Location { data_size: size, rva: short64(at)? });
        at += u64::from(size);
    }
    file.exception(&death, &threads[0], contexts[0])?;
    let mut maps = Counted(0);
    put_maps(case, &death, &mut maps)?;
    let maps = Location { data_size: short64(maps.0)?, rva: short64(at)? };
    file.stream(StreamType::LinuxMaps, maps);
    at += u64::from(maps.data_size);
    let mut placed = Vec::with_capacity(memory.len());
    for (start, bytes) in &memory {
        let location = Location { data_size: short(bytes.len())?, rva: short64(at)? };
        placed.push(MINIDUMP_MEMORY_DESCRIPTOR { start_of_memory_range: *start, memory: location });
        at += bytes.len() as u64;
    }
    short64(at)?;
    let rows = threads.iter().zip(contexts).map(|(thread, context)| of_thread(thread, context, &placed));
    file.list(StreamType::ThreadListStream, rows)?;
    file.list(StreamType::MemoryListStream, placed.iter().copied())?;
    out.write_all(&file.head(identity.and_then(|identity| identity.wall_ns))?)?;
    out.write_all(&file.bytes)?;
    for thread in &threads {
        out.write_all(&of_processor(processor, thread)?)?;
    }
    put_maps(case, &death, out)?;
    memory.values().try_for_each(|bytes| out.write_all(bytes))?;
    Ok(())
}

fn short(length: usize) -> Result<u32, MinidumpError> {
    u32::try_from(length).map_err(|_| MinidumpError::TooLong)
}

fn short64(length: u64) -> Result<u32, MinidumpError> {
    u32::try_from(length).map_err(|_| MinidumpError::TooLong)
}

fn of_thread(thread: &CoreThread<'_>, context: Location, memory: &[MINIDUMP_MEMORY_DESCRIPTOR]) -> MINIDUMP_THREAD {
    let sp = thread.value(RegId::RSP).max(thread.value(ARM64_SP));
    let behind = memory.partition_point(|row| row.start_of_memory_range <= sp);
    let stack = behind.checked_sub(1).and_then(|number| memory.get(number));
    let holds = |row: &&MINIDUMP_MEMORY_DESCRIPTOR| sp - row.start_of_memory_range < row.memory.data_size.into();
    MINIDUMP_THREAD {
        thread_id: thread.id,
        suspend_count: 0,
        priority_class: 0,
        priority: 0,
        teb: 0,
        stack: stack.filter(holds).copied().unwrap_or_default(),
        thread_context: context,
    }
}

/// The file between its directory and the memory.
struct Blob {
    /// Offset of its first byte in the file.
    base: u32,
    bytes: Vec<u8>,
    directory: Vec<MINIDUMP_DIRECTORY>,
}

impl Blob {
    fn end(&self) -> Result<u32, MinidumpError> {
        short64(u64::from(self.base) + self.bytes.len() as u64)
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<Location, MinidumpError> {
        let location = Location { data_size: short(bytes.len())?, rva: self.end()? };
        self.bytes.extend_from_slice(bytes);
        Ok(location)
    }

    fn put<T>(&mut self, value: T) -> Result<Location, MinidumpError>
    where
        T: TryIntoCtx<Endian, Error = scroll::Error> + SizeWith<Endian>,
    {
        let bytes = encoded(value)?;
        self.raw(&bytes)
    }

    fn stream(&mut self, kind: StreamType, location: Location) {
        self.directory.push(MINIDUMP_DIRECTORY { stream_type: kind as u32, location });
    }

    /// A list whose number of rows stands in front of it.
    fn list<T>(&mut self, kind: StreamType, rows: impl ExactSizeIterator<Item = T>) -> Result<(), MinidumpError>
    where
        T: TryIntoCtx<Endian, Error = scroll::Error> + SizeWith<Endian>,
    {
        let rva = self.end()?;
        self.raw(&short(rows.len())?.to_le_bytes())?;
        for row in rows {
            self.put(row)?;
        }
        let data_size = self.end()? - rva;
        self.stream(kind, Location { data_size, rva });
        Ok(())
    }

    /// A length and UTF-16, with the end that readers do not need and writers put.
    fn text(&mut self, text: &str) -> Result<u32, MinidumpError> {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let location = self.raw(&short(units.len())?.to_le_bytes())?;
        self.raw(&[&units[..], &[0, 0]].concat())?;
        Ok(location.rva)
    }

    fn system(&mut self, case: &Case<'_>, processor: Processor) -> Result<(), MinidumpError> {
        let identity = case.identities.first();
        let words = [identity.and_then(|it| it.kernel_name), identity.and_then(|it| it.kernel_version)];
        let words: Vec<_> = words.into_iter().flatten().map(String::from_utf8_lossy).collect();
        let csd_version_rva = self.text(&words.join(" "))?;
        let place = self.put(MINIDUMP_SYSTEM_INFO {
            processor_architecture: processor as u16,
            processor_level: 0,
            processor_revision: 0,
            number_of_processors: u8::try_from(case.cpus.len().max(1)).unwrap_or(u8::MAX),
            product_type: 0,
            major_version: 0,
            minor_version: 0,
            build_number: 0,
            platform_id: PlatformId::Linux as u32,
            csd_version_rva,
            suite_mask: 0,
            reserved2: 0,
            cpu: CPU_INFORMATION { data: [0; 24] },
        })?;
        self.stream(StreamType::SystemInfoStream, place);
        Ok(())
    }

    /// Number, command line and status of the process.
    fn process(&mut self, case: &Case<'_>, death: &Postmortem) -> Result<(), MinidumpError> {
        let pid = death.pid.unwrap_or(0);
        let place = self.put(MINIDUMP_MISC_INFO {
            size_of_info: 24,
            flags1: HAS_PROCESS_ID,
            process_id: pid,
            process_create_time: 0,
            process_user_time: 0,
            process_kernel_time: 0,
        })?;
        self.stream(StreamType::MiscInfoStream, place);
        let task = case.tasks.iter().find(|task| task.pid == death.pid);
        let command = death.cmdline.as_deref().or(task.and_then(|task| task.cmdline)).unwrap_or_default();
        // Arguments end with a NUL there; where one ends is not known of arguments with spaces.
        let mut line: Vec<u8> = command.iter().map(|byte| if *byte == b' ' { 0 } else { *byte }).collect();
        line.push(0);
        let place = self.raw(&line)?;
        self.stream(StreamType::LinuxCmdLine, place);
        let name = death.comm.as_deref().or(task.and_then(|task| task.comm)).unwrap_or_default();
        let parent = task.and_then(|task| task.ppid).unwrap_or(0);
        let status = format!("Name:\t{}\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\n", one_line(name));
        let place = self.raw(status.as_bytes())?;
        self.stream(StreamType::LinuxProcStatus, place);
        Ok(())
    }

    fn names(&mut self, threads: &[CoreThread<'_>]) -> Result<(), MinidumpError> {
        let mut rows = Vec::new();
        for thread in threads.iter().filter(|thread| !thread.name.is_empty()) {
            let rva = self.text(&String::from_utf8_lossy(thread.name))?;
            rows.push(MINIDUMP_THREAD_NAME { thread_id: thread.id, thread_name_rva: rva.into() });
        }
        self.list(StreamType::ThreadNamesStream, rows.into_iter())
    }

    /// The images of the process; the first module is the program.
    fn modules(&mut self, case: &Case<'_>, death: &Postmortem) -> Result<(), MinidumpError> {
        let kernel = |kind: Option<ImageKind>| matches!(kind, Some(ImageKind::KERNEL | ImageKind::MODULE));
        let mut images: Vec<_> =
            case.images.iter().filter(|image| image.pid == death.pid && !kernel(image.kind)).collect();
        images.sort_by_key(|image| image.kind != Some(ImageKind::EXECUTABLE));
        let mut rows = Vec::new();
        for image in images {
            let (Some(start), Some(end)) = (image.start, image.end) else { continue };
            let name = self.text(&String::from_utf8_lossy(image.path.unwrap_or_default()))?;
            let id = image.build_id.map(|id| [&(CvSignature::Elf as u32).to_le_bytes(), id].concat());
            rows.push(MINIDUMP_MODULE {
                base_of_image: start,
                size_of_image: u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX),
                module_name_rva: name,
                cv_record: id.map(|id| self.raw(&id)).transpose()?.unwrap_or_default(),
                ..MINIDUMP_MODULE::default()
            });
        }
        self.list(StreamType::ModuleListStream, rows.into_iter())
    }

    fn exception(&mut self, death: &Postmortem, dead: &CoreThread<'_>, context: Location) -> Result<(), MinidumpError> {
        let place = self.put(MINIDUMP_EXCEPTION_STREAM {
            thread_id: dead.id,
            __align: 0,
            exception_record: MINIDUMP_EXCEPTION {
                exception_code: death.signal.unwrap_or(ExceptionCodeLinux::DUMP_REQUESTED as u32),
                exception_flags: death.signal_code.unwrap_or(0) as u32,
                exception_address: death.fault_addr.unwrap_or(0),
                ..MINIDUMP_EXCEPTION::default()
            },
            thread_context: context,
        })?;
        self.stream(StreamType::ExceptionStream, place);
        Ok(())
    }

    /// Header and directory.
    fn head(&self, wall_ns: Option<i64>) -> Result<Vec<u8>, MinidumpError> {
        let mut head = encoded(MINIDUMP_HEADER {
            signature: MINIDUMP_SIGNATURE,
            version: MINIDUMP_VERSION,
            stream_count: STREAMS,
            stream_directory_rva: HEADER,
            checksum: 0,
            time_date_stamp: wall_ns.and_then(|ns| u32::try_from(ns / 1_000_000_000).ok()).unwrap_or(0),
            flags: 0,
        })?;
        for row in &self.directory {
            head.extend(encoded(row.clone())?);
        }
        // Readers pass over a row of zeros.
        head.resize(self.base as usize, 0);
        Ok(head)
    }
}

fn encoded<T>(value: T) -> Result<Vec<u8>, MinidumpError>
where
    T: TryIntoCtx<Endian, Error = scroll::Error> + SizeWith<Endian>,
{
    let mut bytes = vec![0; T::size_with(&LE)];
    bytes.pwrite_with(value, 0, LE).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

fn context_size(processor: Processor) -> u32 {
    let size = match processor {
        Processor::PROCESSOR_ARCHITECTURE_ARM64 => CONTEXT_ARM64::size_with(&LE),
        _ => CONTEXT_AMD64::size_with(&LE),
    };
    size as u32
}

fn of_processor(processor: Processor, thread: &CoreThread<'_>) -> Result<Vec<u8>, MinidumpError> {
    if processor != Processor::PROCESSOR_ARCHITECTURE_ARM64 {
        return encoded(of_amd64(thread));
    }
    let mut context = CONTEXT_ARM64 { context_flags: ARM64_PARTS, ..CONTEXT_ARM64::default() };
    for (slot, number) in context.iregs.iter_mut().zip(0..) {
        *slot = thread.value(RegId(number));
    }
    (context.sp, context.pc) = (thread.value(ARM64_SP), thread.value(ARM64_PC));
    context.cpsr = thread.value(RegId::PSTATE) as u32;
    encoded(context)
}

/// The mappings of the process as `/proc/PID/maps` has them.
fn put_maps(case: &Case<'_>, death: &Postmortem, out: &mut dyn Write) -> io::Result<()> {
    for vma in case.vmas.iter().filter(|vma| vma.pid == death.pid) {
        let (Some(start), Some(end)) = (vma.start, vma.end) else { continue };
        let right = |bit: u32, letter: char| if vma.prot.unwrap_or(0) & bit == 0 { '-' } else { letter };
        let rights = [right(1, 'r'), right(2, 'w'), right(4, 'x')].iter().collect::<String>();
        let offset = vma.file_offset.unwrap_or(0);
        let name = vma.path.or(vma.name.filter(|name| name.starts_with(b"["))).unwrap_or_default();
        writeln!(out, "{start:08x}-{end:08x} {rights}p {offset:08x} 00:00 0 {}", one_line(name))?;
    }
    Ok(())
}

fn of_amd64(thread: &CoreThread<'_>) -> CONTEXT_AMD64 {
    let of = |id: RegId| thread.value(id);
    let half = |id: RegId| of(id) as u16;
    let mut context = CONTEXT_AMD64 {
        context_flags: AMD64_PARTS,
        cs: half(RegId::CS),
        ds: half(RegId::DS),
        es: half(RegId::ES),
        fs: half(RegId::FS),
        gs: half(RegId::GS),
        ss: half(RegId::SS),
        eflags: of(RegId::RFLAGS) as u32,
        rax: of(RegId::RAX),
        rcx: of(RegId::RCX),
        rdx: of(RegId::RDX),
        rbx: of(RegId::RBX),
        rsp: of(RegId::RSP),
        rbp: of(RegId::RBP),
        rsi: of(RegId::RSI),
        rdi: of(RegId::RDI),
        r8: of(RegId::R8),
        r9: of(RegId::R9),
        r10: of(RegId::R10),
        r11: of(RegId::R11),
        r12: of(RegId::R12),
        r13: of(RegId::R13),
        r14: of(RegId::R14),
        r15: of(RegId::R15),
        rip: of(RegId::RIP),
        ..CONTEXT_AMD64::default()
    };
    // The area of `FXSAVE` is the beginning of that of `XSAVE`.
    if let Some(area) = thread.extended.get(..context.float_save.len()) {
        context.float_save.copy_from_slice(area);
        context.context_flags |= AMD64_FLOATING;
    }
    context
}

/// A name as a line of a file of `/proc` has it.
fn one_line(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace(['\n', '\0'], "?")
}
