//! What Breakpad and Crashpad add on Linux: files of `/proc` as they were, and notes of the program itself.

use std::io;

use minidump_common::format::{
    MINIDUMP_CRASHPAD_INFO, MINIDUMP_SIMPLE_STRING_DICTIONARY_ENTRY, MINIDUMP_STREAM_TYPE as StreamType,
};
use scroll::{LE, Pread as _};

use super::super::elf_core::{AT_BASE, AT_ENTRY, AT_SYSINFO_EHDR, MOST_PATH};
use super::super::process::{DeadProcess, ProcessMapping};
use super::container::Container;
use super::context::Cpu;

/// Bytes of such a file.
const MOST_BYTES: usize = 1 << 20;
/// Mappings: Linux allows 65,530 by default.
pub(super) const MOST_MAPPINGS: usize = 1 << 17;
/// Notes that a program left with Crashpad, and bytes of a name or value.
const MOST_NOTES: u32 = 1024;
const MOST_NOTE: usize = 4096;
/// Mappings of the kernel's making.
const NAMES: [&str; 5] = ["[stack]", "[heap]", "[vdso]", "[vvar]", "[vvar_vclock]"];
/// Files that are kept as they are, with their names.
const KEPT: [(StreamType, &str); 6] = [
    (StreamType::LinuxCpuInfo, "/proc/cpuinfo"),
    (StreamType::LinuxProcStatus, "/proc/PID/status"),
    (StreamType::LinuxLsbRelease, "/etc/lsb-release"),
    (StreamType::LinuxEnviron, "/proc/PID/environ"),
    (StreamType::MozLinuxLimits, "/proc/PID/limits"),
    (StreamType::MozSoftErrors, "errors while the minidump was written"),
];

/// Values of the auxiliary vector.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Auxv {
    /// Entry point of the program.
    pub entry: Option<u64>,
    /// Where the dynamic loader lies.
    pub base: Option<u64>,
    /// Where the vDSO lies.
    pub vdso: Option<u64>,
}

/// Reads the auxiliary vector, of words as the processor has them.
pub(super) fn auxv(container: &Container<'_>, cpu: Option<Cpu>) -> io::Result<Auxv> {
    let bytes = container.whole("auxiliary vector", StreamType::LinuxAuxv, MOST_NOTE)?.unwrap_or_default();
    let size = cpu.map_or(8, Cpu::word);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let mut found = Auxv::default();
    for pair in bytes.chunks_exact(2 * size) {
        let (kind, value) = (word(&pair[..size]), Some(word(&pair[size..])).filter(|value| *value != 0));
        match kind {
            0 => break,
            AT_ENTRY => found.entry = value,
            AT_BASE => found.base = value,
            AT_SYSINFO_EHDR => found.vdso = value,
            _ => {}
        }
    }
    Ok(found)
}

/// Fills in names, numbers and texts.
pub(super) fn read(container: &Container<'_>, process: &mut DeadProcess) -> io::Result<()> {
    for (kind, name) in KEPT {
        let Some(bytes) = container.whole(name, kind, MOST_BYTES)? else { continue };
        if kind == StreamType::LinuxProcStatus {
            status(&bytes, process);
        }
        process.texts.push((name.to_owned(), bytes));
    }
    if let Some(mut line) = container.whole("/proc/PID/cmdline", StreamType::LinuxCmdLine, MOST_PATH)? {
        line.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
        process.death.cmdline = Some(line.trim_ascii().to_vec()).filter(|line| !line.is_empty());
    }
    crashpad(container, process)
}

/// Name and numbers of the process (proc(5)).
fn status(text: &[u8], process: &mut DeadProcess) {
    for line in text.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let value = line[colon + 1..].trim_ascii();
        let number = || str::from_utf8(value).ok()?.parse().ok();
        match &line[..colon] {
            b"Name" => process.death.comm = Some(value[..value.len().min(64)].to_vec()),
            b"Tgid" => process.death.pid = number(),
            b"PPid" => process.parent = number(),
            _ => {}
        }
    }
}

/// The mappings of `/proc/PID/maps`.
pub(super) fn maps(container: &Container<'_>) -> io::Result<Vec<ProcessMapping>> {
    let text = container.whole("/proc/PID/maps", StreamType::LinuxMaps, usize::MAX)?.unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let (mut mappings, mut unread) = (Vec::new(), 0_u64);
    for line in lines {
        match mapping(line) {
            // The vsyscall page is in the kernel's half and of no process.
            Some(mapping) if mapping.start >> 63 == 1 => {}
            Some(mapping) if mappings.len() < MOST_MAPPINGS => mappings.push(mapping),
            _ => unread += 1,
        }
    }
    if unread > 0 {
        container.lacks(format!("mappings: {unread} lines could not be read"));
    }
    mappings.sort_by_key(|mapping: &ProcessMapping| mapping.start);
    Ok(mappings)
}

/// `00400000-00401000 r-xp 00000000 08:01 1234    /srv/demo/process`
fn mapping(line: &[u8]) -> Option<ProcessMapping> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        word
    };
    let hex = |word: &[u8]| u64::from_str_radix(str::from_utf8(word).ok()?, 16).ok();
    let range = word();
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
    let rights = word();
    let right = |at: usize, letter: u8, bit: u32| if rights.get(at) == Some(&letter) { bit } else { 0 };
    let offset = hex(word())?;
    let _device_and_inode = (word(), word());
    let path = rest.trim_ascii();
    let name = NAMES.into_iter().find(|name| name.as_bytes() == path);
    let path = path[..path.len().min(MOST_PATH)].to_vec();
    Some(ProcessMapping {
        start,
        end,
        prot: Some(right(0, b'r', 1) | right(1, b'w', 2) | right(2, b'x', 4)),
        file: Some((path, offset)).filter(|(path, _)| path.starts_with(b"/")),
        name,
    })
    .filter(|mapping| mapping.start < mapping.end)
}

/// Notes that the program left with Crashpad, as lines of a text.
fn crashpad(container: &Container<'_>, process: &mut DeadProcess) -> io::Result<()> {
    let Some(location) = container.stream(StreamType::CrashpadInfoStream) else { return Ok(()) };
    let Some(info) = container.structure::<MINIDUMP_CRASHPAD_INFO>("Crashpad's stream", location, 52)? else {
        return Ok(());
    };
    let place = info.simple_annotations;
    let what = "notes of Crashpad";
    let count: u32 = container.bytes(what, place, 4)?.pread_with(0, LE).unwrap_or(0);
    let count = container.bounded(what, count.into(), MOST_NOTES.into());
    let rows: Vec<MINIDUMP_SIMPLE_STRING_DICTIONARY_ENTRY> = container.rows(what, place, 4, count, 8)?;
    let mut text = Vec::new();
    for row in rows {
        let of = |rva: u32| container.counted(rva.into(), MOST_NOTE).map(Option::unwrap_or_default);
        let (key, value) = (of(row.key)?, of(row.value)?);
        text.extend_from_slice(&[&key[..], b": ", &value, b"\n"].concat());
    }
    if !text.is_empty() {
        process.texts.push((what.to_owned(), text));
    }
    Ok(())
}
