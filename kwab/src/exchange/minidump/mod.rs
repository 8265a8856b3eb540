//! Reads a minidump of Breakpad, Crashpad, Mozilla's minidump-writer or Windows: the death of a process.
//!
//! | stream | becomes |
//! |---|---|
//! | exception | the death: signal, exception, address |
//! | threads, thread names | registers and tasks, the dead one first |
//! | modules | images with build-id, or a remark with their debug id |
//! | both lists of memory, stacks of threads | memory |
//! | `/proc/PID/maps`, memory info | mappings |
//! | system info, misc info, `/proc/PID/status`, auxiliary vector | names and numbers |
//! | texts of `/proc`, Crashpad's notes | texts |
//!
//! The structures are those of `minidump-common`; the rows are taken one by one by [`container`], since the reader that
//! goes with them lets every structure share one name of any length. Processors are x86-64, 32-bit x86 and AArch64.

mod container;
mod context;
mod linux;
mod modules;

#[cfg(test)]
mod read_back;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io;

use minidump_common::errors::{ExceptionCodeLinux, ExceptionCodeMac, ExceptionCodeWindows};
use minidump_common::format::{
    MINIDUMP_EXCEPTION, MINIDUMP_EXCEPTION_STREAM, MINIDUMP_MEMORY_DESCRIPTOR, MINIDUMP_MEMORY_DESCRIPTOR64,
    MINIDUMP_MEMORY_INFO, MINIDUMP_MEMORY_INFO_LIST, MINIDUMP_MISC_INFO, MINIDUMP_STREAM_TYPE as StreamType,
    MINIDUMP_SYSTEM_INFO, MINIDUMP_THREAD, MINIDUMP_THREAD_NAME, MemoryProtection, MemoryState, PlatformId,
};
use num_traits::FromPrimitive as _;
use scroll::{LE, Pread as _};

use self::container::{Container, refused};
use self::context::Cpu;
use super::ExchangeError;
use super::file_memory::{Claim, FileMemory};
use super::process::{DeadProcess, ProcessMapping, ProcessThread, is_deadly, signal_name, tells_address};
use crate::model::Death;

/// Threads that are read.
const MOST_THREADS: u32 = 1 << 14;
/// Characters of a thread's name.
const MOST_NAME: usize = 128;
/// Ranges of memory that are read.
const MOST_RANGES: u64 = 1 << 18;
/// `flags1` of the misc info: it has the number of the process.
const HAS_PROCESS_ID: u32 = 1;

/// Reads all but the memory, which stays in the file.
///
/// # Errors
/// [`ExchangeError`] when it is not a minidump of a known processor, or cannot be read.
pub(super) fn read(file: &File) -> Result<(DeadProcess, FileMemory<'_>), ExchangeError> {
    let container = Container::open(file)?;
    let mut process = DeadProcess {
        dialect: "minidump",
        wall_ns: (container.written != 0).then(|| i64::from(container.written) * 1_000_000_000),
        ..DeadProcess::default()
    };
    let rows: Vec<MINIDUMP_THREAD> = container.list("threads", StreamType::ThreadListStream, MOST_THREADS)?;
    let system = system(&container, &mut process)?;
    let cpu = match system {
        Some((number, _)) => {
            Some(Cpu::of(number).ok_or_else(|| refused("is a minidump of a processor that kwab cannot read"))?)
        }
        None => rows.first().and_then(|row| Cpu::of_length(row.thread_context.data_size)),
    };
    process.arch = cpu.and_then(Cpu::arch);
    if cpu == Some(Cpu::X86) {
        process.remarks.push("the process was one of 32-bit x86".to_owned());
    }
    linux::read(&container, &mut process)?;
    let auxv = linux::auxv(&container, cpu)?;
    process.death.pid = process.death.pid.or(misc_pid(&container)?);
    let claims = claims(&container, &rows)?;
    threads(&container, cpu, &rows, &mut process)?;
    exception(&container, cpu, system.and_then(|(_, platform)| platform), &mut process)?;
    process.mappings = mappings(&container)?;
    let memory = FileMemory::of(file, container.length(), claims);
    process.images = modules::read(&container, &memory, &auxv, &mut process.remarks)?;
    name_stack(&mut process);
    unread(&container, &mut process);
    process.missing = container.into_missing();
    process.missing.extend(memory.missing());
    Ok((process, memory))
}

/// Processor and system; fills in the system's name.
fn system(container: &Container<'_>, process: &mut DeadProcess) -> io::Result<Option<(u16, Option<PlatformId>)>> {
    let Some(location) = container.stream(StreamType::SystemInfoStream) else {
        container.lacks("system info: it has no such stream".to_owned());
        return Ok(None);
    };
    let Some(info) = container.structure::<MINIDUMP_SYSTEM_INFO>("system info", location, 32)? else { return Ok(None) };
    let platform = PlatformId::from_u32(info.platform_id);
    let name = match platform {
        // The numbers of `minidump-common` are one above those that Windows writes.
        Some(known) if (known as u32) < PlatformId::Unix as u32 => Some("Windows".to_owned()),
        Some(PlatformId::MacOs) => Some("macOS".to_owned()),
        Some(PlatformId::Ios) => Some("iOS".to_owned()),
        Some(known) => Some(format!("{known:?}")),
        None => None,
    };
    let version = (info.major_version, info.minor_version, info.build_number);
    let numbers = (version != (0, 0, 0)).then(|| format!("{}.{}.{}", version.0, version.1, version.2));
    let words = container.utf16(info.csd_version_rva.into(), MOST_NAME * 4)?;
    let version = version_words(name.as_deref(), numbers.as_deref(), words.as_deref().unwrap_or_default());
    process.system = (name, Some(version).filter(|text| !text.is_empty()));
    Ok(Some((info.processor_architecture, platform)))
}

/// The version without the system's name: Breakpad and Crashpad write all of `uname` as words on Linux.
fn version_words(name: Option<&str>, numbers: Option<&str>, words: &str) -> String {
    let words = words.trim();
    let after_name =
        name.and_then(|name| words.strip_prefix(name)).filter(|rest| rest.is_empty() || rest.starts_with(' '));
    let words = after_name.unwrap_or(words).trim();
    match numbers {
        Some(numbers) if words.is_empty() => numbers.to_owned(),
        Some(numbers) if !words.starts_with(numbers) => format!("{numbers} {words}"),
        _ => words.to_owned(),
    }
}

fn misc_pid(container: &Container<'_>) -> io::Result<Option<u32>> {
    let Some(location) = container.stream(StreamType::MiscInfoStream) else { return Ok(None) };
    let info = container.structure::<MINIDUMP_MISC_INFO>("misc info", location, 12)?;
    Ok(info.filter(|info| info.flags1 & HAS_PROCESS_ID != 0).map(|info| info.process_id))
}

/// What the file says to hold of memory.
fn claims(container: &Container<'_>, threads: &[MINIDUMP_THREAD]) -> io::Result<Vec<Claim>> {
    let listed: Vec<MINIDUMP_MEMORY_DESCRIPTOR> =
        container.list("memory", StreamType::MemoryListStream, MOST_RANGES as u32)?;
    let stacks = threads.iter().map(|thread| thread.stack);
    let mut claims: Vec<Claim> = listed
        .into_iter()
        .chain(stacks)
        .map(|row| Claim {
            start: row.start_of_memory_range,
            offset: row.memory.rva.into(),
            length: row.memory.data_size.into(),
        })
        .collect();
    // A stack that is named by its thread and by the list is not lost while one of the two is there.
    claims.sort_unstable_by_key(|claim| (claim.start, claim.offset, claim.length));
    claims.dedup_by_key(|claim| (claim.start, claim.offset, claim.length));
    let Some(location) = container.stream(StreamType::Memory64ListStream) else { return Ok(claims) };
    let head = container.bytes("full memory", location, 16)?;
    let (Ok(count), Ok(mut offset)) = (head.pread_with::<u64>(0, LE), head.pread_with::<u64>(8, LE)) else {
        return Ok(claims);
    };
    let count = container.bounded("full memory", count, MOST_RANGES);
    let rows: Vec<MINIDUMP_MEMORY_DESCRIPTOR64> = container.rows("full memory", location, 16, count, 16)?;
    for row in rows {
        claims.push(Claim { start: row.start_of_memory_range, offset, length: row.data_size });
        offset = offset.saturating_add(row.data_size);
    }
    Ok(claims)
}

fn threads(
    container: &Container<'_>,
    cpu: Option<Cpu>,
    rows: &[MINIDUMP_THREAD],
    process: &mut DeadProcess,
) -> io::Result<()> {
    let mut names = HashMap::new();
    let named: Vec<MINIDUMP_THREAD_NAME> =
        container.list("names of threads", StreamType::ThreadNamesStream, MOST_THREADS)?;
    for row in named {
        if let Some(name) = container.utf16(row.thread_name_rva, MOST_NAME)? {
            names.insert(row.thread_id, name.into_bytes());
        }
    }
    let mut without = 0_u64;
    for row in rows {
        let name = names.remove(&row.thread_id).unwrap_or_default();
        let mut thread = ProcessThread { tid: row.thread_id, name, ..ProcessThread::default() };
        let read = match cpu {
            Some(cpu) => context::read(container, cpu, row.thread_context, &mut thread)?,
            None => false,
        };
        without += u64::from(!read);
        process.threads.push(thread);
    }
    if without > 0 {
        container.lacks(format!("registers of {without} of {} threads", rows.len()));
    }
    if rows.is_empty() {
        container.lacks("threads: it names none".to_owned());
    }
    Ok(())
}

/// What the process died of; the thread that did becomes the first, with the registers at the exception.
fn exception(
    container: &Container<'_>,
    cpu: Option<Cpu>,
    platform: Option<PlatformId>,
    process: &mut DeadProcess,
) -> io::Result<()> {
    let location = container.stream(StreamType::ExceptionStream);
    let told = match location {
        Some(location) => container.structure::<MINIDUMP_EXCEPTION_STREAM>("exception", location, 40)?,
        None => None,
    };
    if let Some(told) = &told {
        let at = process.threads.iter().position(|thread| thread.tid == told.thread_id);
        match at {
            Some(at) => process.threads[..=at].rotate_right(1),
            None => process.threads.insert(0, ProcessThread { tid: told.thread_id, ..ProcessThread::default() }),
        }
        if let (Some(cpu), Some(first)) = (cpu, process.threads.first_mut())
            && told.thread_context.data_size > 0
        {
            context::read(container, cpu, told.thread_context, first)?;
        }
    }
    let dead = process.threads.first();
    let (tid, ip, sp) = (dead.map(|it| it.tid), dead.and_then(|it| it.ip), dead.and_then(|it| it.sp));
    let pid = process.death.pid.or(tid);
    process.death = Death { pid, tid, ip, sp, ..process.death.clone() };
    if let Some(told) = told {
        of_record(&told.exception_record, platform, &mut process.death);
    }
    if process.death.comm.is_none() {
        process.death.comm = process.threads.first().map(|first| first.name.clone()).filter(|name| !name.is_empty());
    }
    Ok(())
}

/// Reads an exception record as its system means it.
fn of_record(record: &MINIDUMP_EXCEPTION, platform: Option<PlatformId>, death: &mut Death) {
    let code = record.exception_code;
    match platform {
        Some(PlatformId::Linux | PlatformId::Android | PlatformId::Unix | PlatformId::NaCl) => {
            let flags = record.exception_flags.cast_signed();
            death.signal = Some(code).filter(|code| is_deadly(*code));
            death.signal_name = death.signal.and_then(signal_name);
            death.signal_code = death.signal.map(|_| flags.into());
            let fault = death.signal.is_some() && tells_address(code, flags);
            death.fault_addr = fault.then_some(record.exception_address);
            if death.signal.is_none() && code != ExceptionCodeLinux::DUMP_REQUESTED as u32 && code != 0 {
                death.exception = Some(format!("signal {code}").into_bytes());
            }
        }
        Some(PlatformId::MacOs | PlatformId::Ios) => {
            let known = ExceptionCodeMac::from_u32(code);
            if known == Some(ExceptionCodeMac::SIMULATED) {
                return;
            }
            death.exception =
                Some(known.map_or_else(|| format!("{code:#x}"), |known| format!("{known:?}")).into_bytes());
            let fault = known == Some(ExceptionCodeMac::EXC_BAD_ACCESS);
            death.fault_addr = fault.then_some(record.exception_address);
        }
        _ => {
            let known = ExceptionCodeWindows::from_u32(code);
            if known == Some(ExceptionCodeWindows::SIMULATED) {
                return;
            }
            let name = known.map_or_else(|| format!("{code:#x}"), |known| format!("{known:?}"));
            death.exception = Some(name.into_bytes());
            type Code = ExceptionCodeWindows;
            let fault = matches!(known, Some(Code::EXCEPTION_ACCESS_VIOLATION | Code::EXCEPTION_IN_PAGE_ERROR));
            let told = fault && record.number_parameters >= 2;
            death.fault_addr = told.then(|| record.exception_information[1]);
        }
    }
}

/// Mappings by `/proc/PID/maps`, or by what Windows says of its memory.
fn mappings(container: &Container<'_>) -> io::Result<Vec<ProcessMapping>> {
    if container.stream(StreamType::LinuxMaps).is_some() {
        return linux::maps(container);
    }
    let Some(location) = container.stream(StreamType::MemoryInfoListStream) else { return Ok(Vec::new()) };
    let what = "memory info";
    let Some(head) = container.structure::<MINIDUMP_MEMORY_INFO_LIST>(what, location, 16)? else {
        return Ok(Vec::new());
    };
    let count = container.bounded(what, head.number_of_entries, linux::MOST_MAPPINGS as u64);
    let (skip, stride) = (u64::from(head.size_of_header), head.size_of_entry as usize);
    let rows: Vec<MINIDUMP_MEMORY_INFO> = container.rows(what, location, skip, count, stride)?;
    let committed = rows.into_iter().filter(|row| row.state & MemoryState::MEM_COMMIT.bits() != 0);
    Ok(committed.map(|row| of_info(&row)).collect())
}

fn of_info(row: &MINIDUMP_MEMORY_INFO) -> ProcessMapping {
    let protection = MemoryProtection::from_bits_truncate(row.protection) & MemoryProtection::ACCESS_MASK;
    let prot = match protection {
        MemoryProtection::PAGE_READONLY => 1,
        MemoryProtection::PAGE_READWRITE | MemoryProtection::PAGE_WRITECOPY => 3,
        MemoryProtection::PAGE_EXECUTE => 4,
        MemoryProtection::PAGE_EXECUTE_READ => 5,
        MemoryProtection::PAGE_EXECUTE_READWRITE | MemoryProtection::PAGE_EXECUTE_WRITECOPY => 7,
        _ => 0,
    };
    let end = row.base_address.saturating_add(row.region_size);
    ProcessMapping { start: row.base_address, end, prot: Some(prot), ..ProcessMapping::default() }
}

/// Names the mapping of the dead thread's stack, which Windows does not.
fn name_stack(process: &mut DeadProcess) {
    let Some(sp) = process.death.sp else { return };
    let holds = |mapping: &&mut ProcessMapping| (mapping.start..mapping.end).contains(&sp);
    if let Some(mapping) = process.mappings.iter_mut().find(holds)
        && mapping.file.is_none()
    {
        mapping.name = mapping.name.or(Some("[stack]"));
    }
}

/// Streams that are read; the rest are named in a remark.
const READ: [StreamType; 20] = [
    StreamType::CrashpadInfoStream,
    StreamType::ExceptionStream,
    StreamType::LinuxAuxv,
    StreamType::LinuxCmdLine,
    StreamType::LinuxCpuInfo,
    StreamType::LinuxEnviron,
    StreamType::LinuxLsbRelease,
    StreamType::LinuxMaps,
    StreamType::LinuxProcStatus,
    StreamType::Memory64ListStream,
    StreamType::MemoryInfoListStream,
    StreamType::MemoryListStream,
    StreamType::MiscInfoStream,
    StreamType::ModuleListStream,
    StreamType::MozLinuxLimits,
    StreamType::MozSoftErrors,
    StreamType::SystemInfoStream,
    StreamType::ThreadListStream,
    StreamType::ThreadNamesStream,
    StreamType::UnusedStream,
];

/// Says which streams were not read.
fn unread(container: &Container<'_>, process: &mut DeadProcess) {
    const MOST: usize = 16;
    let others = container.kinds().filter(|kind| READ.iter().all(|read| *read as u32 != *kind)).take(MOST);
    let name = |kind| StreamType::from_u32(kind).map_or_else(|| format!("{kind:#x}"), |known| format!("{known:?}"));
    let others: Vec<String> = others.map(name).collect();
    if !others.is_empty() {
        process.remarks.push(format!("streams that were not read: {}", others.join(", ")));
    }
}
