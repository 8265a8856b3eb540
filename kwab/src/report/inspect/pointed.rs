//! Puts the strings and structures that calls pointed at into the rows of calls, where an image or the dump holds them.
//!
//! A recorder keeps addresses. What a program's read-only segments hold at one is what the kernel read there, whenever
//! the call was made; other memory may have changed since, and stays an address, unless the call has not returned.

use linux_abi::syscalls::{self, ArgKind};

use super::EventRow;
use crate::model::call::{Call, arguments};
use crate::model::{Case, structure};
use crate::symbols::Symbols;

/// Bytes of a string that are shown, as by strace.
const SHOWN: usize = 32;
/// Bytes of a path: all that a kernel takes (PATH_MAX).
const LONGEST_PATH: usize = 4096;
/// How the row of a call that has not returned ends.
const OPEN: &str = "(in progress)";

/// A call as it was recorded, for a row that may say more than addresses.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// Number of the system call.
    pub nr: Option<i64>,
    /// Name as the source printed it.
    pub name: Option<Vec<u8>>,
    /// The arguments that were recorded, as the registers held them.
    pub args: [Option<u64>; 6],
}

/// Replaces addresses by what they point at.
pub(super) fn strings(rows: &mut [EventRow], case: &Case<'_>, symbols: &Symbols) {
    for row in rows {
        let Some((call, pid)) = row.call.as_deref().zip(row.pid) else { continue };
        let bare = Call { nr: call.nr, name: call.name.as_deref(), args: call.args, ..Call::default() };
        let known = call.nr.and_then(|nr| u64::try_from(nr).ok()).and_then(syscalls::by_number);
        let Some((known, rest)) = known.zip(row.text.strip_prefix(&arguments(&bare))) else { continue };
        let found: Vec<Option<(Vec<u8>, bool)>> = (0..6)
            .map(|at| {
                let value = call.args[at].filter(|value| *value != 0)?;
                match known.args.get(at)?.kind {
                    ArgKind::Path => string(symbols, value, pid, LONGEST_PATH),
                    ArgKind::Str => string(symbols, value, pid, SHOWN),
                    // What is written is as long as the argument behind it says.
                    ArgKind::Ptr if at == 1 && matches!(known.name, "write" | "pwrite64" | "sendto") => {
                        buffer(symbols, value, pid, call.args[2]?)
                    }
                    ArgKind::Ptr => {
                        let size = structure::size(known.name, at, &call.args)?;
                        let bytes = constant(symbols, value, pid, size).filter(|bytes| bytes.len() == size);
                        Some((
                            bytes.or_else(|| row.text.ends_with(OPEN).then(|| held(case, value, pid, size))?)?,
                            false,
                        ))
                    }
                    _ => None,
                }
            })
            .collect();
        let mut full = bare;
        for (text, found) in full.texts.iter_mut().zip(&found) {
            *text = found.as_ref().map(|(bytes, cut)| (bytes.as_slice(), *cut));
        }
        row.text = arguments(&full) + rest;
    }
}

/// What the dump has of a program's memory; as the call saw it while the call has not returned.
fn held(case: &Case<'_>, addr: u64, pid: u32, size: usize) -> Option<Vec<u8>> {
    let piece = case.memory_holding(Some(pid), addr)?;
    let skip = usize::try_from(addr.checked_sub(piece.vaddr?)?).ok()?;
    Some(piece.bytes?.get(skip..)?.get(..size)?.to_vec())
}

/// The string at an address, up to its end, and whether it goes on behind what is shown.
fn string(symbols: &Symbols, addr: u64, pid: u32, most: usize) -> Option<(Vec<u8>, bool)> {
    let mut bytes = constant(symbols, addr, pid, most + 1)?;
    match memchr::memchr(0, &bytes) {
        Some(end) => bytes.truncate(end),
        // The image ends inside of it.
        None if bytes.len() <= most => return None,
        None => bytes.truncate(most),
    }
    let cut = bytes.len() == most;
    Some((bytes, cut))
}

/// The bytes of a buffer, and whether it goes on behind what is shown. One with a zero in it reads like a list of
/// strings, and stays an address.
fn buffer(symbols: &Symbols, addr: u64, pid: u32, length: u64) -> Option<(Vec<u8>, bool)> {
    let shown = usize::try_from(length).ok()?.min(SHOWN);
    let bytes = constant(symbols, addr, pid, shown)?;
    let whole = bytes.len() == shown && shown > 0;
    whole.then_some((bytes, length > SHOWN as u64))
}

/// What an image has at an address in a segment that cannot be written.
fn constant(symbols: &Symbols, addr: u64, pid: u32, most: usize) -> Option<Vec<u8>> {
    let loaded = symbols.image_at(addr, Some(pid)).filter(|loaded| loaded.pid == Some(pid))?;
    let link = loaded.link(addr);
    let room = loaded.image.constant_bytes(link)?;
    let mut bytes = vec![0; most.min(usize::try_from(room).unwrap_or(most))];
    let read = loaded.image.read(link, &mut bytes);
    bytes.truncate(read);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kwab_format::record::Memory;
    use kwab_format::{BootId, DumpId, FileHeader, SectionKind};

    use super::*;
    use crate::model::Dump;
    use crate::model::emit::DumpWriter;
    use crate::symbols::{Image, IndexCache, LoadedImage};

    fn row(pid: u32, nr: i64, args: [u64; 3]) -> EventRow {
        let [first, second, third] = args.map(Some);
        let call = RecordedCall { nr: Some(nr), name: None, args: [first, second, third, None, None, None] };
        let text = arguments(&Call { nr: call.nr, args: call.args, ..Call::default() }) + " = 3";
        let (line, ns, cpu, at, took_ns) = (None, None, None, None, None);
        EventRow { line, ns, cpu, pid: Some(pid), text, at, took_ns, call: Some(Box::new(call)) }
    }

    /// A dump with the stack of process 7 from 0x7000 on.
    fn dump(stack: &[u8]) -> Dump {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(1), BootId([1; 16])));
        let piece = Memory { pid: Some(7), vaddr: Some(0x7000), bytes: Some(stack), ..Memory::default() };
        writer.put(SectionKind::STACKS, &piece);
        Dump::from_bytes(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn a_structure_on_the_stack_stands_in_a_call_that_has_not_returned_and_in_no_other() {
        let stack = [3u64.to_le_bytes(), 500u64.to_le_bytes()].concat();
        let dump = dump(&stack);
        // nanosleep: of process 7, of another, returned, and with a structure that is not all there.
        let mut rows = [(7, 0x7000), (8, 0x7000), (7, 0x7000), (7, 0x7008)].map(|(pid, at)| row(pid, 35, [at, 0, 0]));
        for at in [0, 1, 3] {
            rows[at].text = rows[at].text.replace("= 3", "= ? (in progress)");
        }
        strings(&mut rows, &dump.case(), &Symbols::new());
        let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let wanted = [
            "nanosleep({tv_sec=3, tv_nsec=500}, NULL) = ? (in progress)",
            "nanosleep(0x7000, NULL) = ? (in progress)",
            "nanosleep(0x7000, NULL) = 3",
            "nanosleep(0x7008, NULL) = ? (in progress)",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn strings_of_read_only_segments_stand_in_calls_and_what_may_have_changed_stays_an_address() {
        let image = Image::open("../testing/data/exchange/process".as_ref(), &IndexCache::none()).unwrap();
        let mut symbols = Symbols::new();
        symbols.add(LoadedImage::new(Arc::new(image), 0x1000, Some(7)));
        // The note's name `GNU` lies at 0x40012c, code behind it; from 0x401000 on memory can be written.
        let mut rows = [
            row(7, 2, [0x40_112c, 0, 0]),
            row(8, 2, [0x40_112c, 0, 0]),
            row(7, 2, [0x40_2000, 0, 0]),
            row(7, 2, [0, 0, 0]),
            row(7, 1, [1, 0x40_112c, 2]),
            row(7, 1, [1, 0x40_112c, 4]),
        ];
        let dump = dump(&[]);
        strings(&mut rows, &dump.case(), &symbols);
        let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let wanted = [
            "open(\"GNU\", O_RDONLY) = 3",
            "open(0x40112c, O_RDONLY) = 3",
            "open(0x402000, O_RDONLY) = 3",
            "open(NULL, O_RDONLY) = 3",
            "write(1, \"GN\", 2) = 3",
            "write(1, \"GNU\\x00\", 4) = 3",
        ];
        assert_eq!(texts, wanted);
    }
}
