//! Puts the strings that calls pointed at into the rows of calls, where an image holds them.
//!
//! A recorder keeps addresses. What a program's read-only segments hold at one is what the kernel read there, whenever
//! the call was made; other memory may have changed since, and stays an address.

use linux_abi::syscalls::{self, ArgKind};

use super::EventRow;
use crate::model::call::{Call, arguments};
use crate::symbols::Symbols;

/// Bytes of a string that are shown, as by strace.
const SHOWN: usize = 32;
/// Bytes of a path: all that a kernel takes (PATH_MAX).
const LONGEST_PATH: usize = 4096;

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

/// Replaces addresses of constant strings by the strings.
pub(super) fn strings(rows: &mut [EventRow], symbols: &Symbols) {
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
    let whole = bytes.len() == shown && shown > 0 && !bytes.contains(&0);
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

    use super::*;
    use crate::symbols::{Image, IndexCache, LoadedImage};

    fn row(pid: u32, nr: i64, args: [u64; 3]) -> EventRow {
        let [first, second, third] = args.map(Some);
        let call = RecordedCall { nr: Some(nr), name: None, args: [first, second, third, None, None, None] };
        let text = arguments(&Call { nr: call.nr, args: call.args, ..Call::default() }) + " = 3";
        let (line, ns, cpu, at, took_ns) = (None, None, None, None, None);
        EventRow { line, ns, cpu, pid: Some(pid), text, at, took_ns, call: Some(Box::new(call)) }
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
        strings(&mut rows, &symbols);
        let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let wanted = [
            "open(\"GNU\", O_RDONLY) = 3",
            "open(0x40112c, O_RDONLY) = 3",
            "open(0x402000, O_RDONLY) = 3",
            "open(NULL, O_RDONLY) = 3",
            "write(1, \"GN\", 2) = 3",
            "write(1, 0x40112c, 4) = 3",
        ];
        assert_eq!(texts, wanted);
    }
}
