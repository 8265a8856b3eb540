//! Where a system call's error can come from: the functions that its handler calls and that make that error.
//!
//! The handler stands in the kernel's table of system calls, its calls and the error numbers in its machine code. Calls
//! through pointers are not followed, and which of several places made the error is not known: what is found are
//! candidates, nearest to the handler first.

use std::collections::{BTreeSet, VecDeque};

use linux_abi::Errno;

use super::keepers::TABLE;
use crate::decode::calls::{Reference, references};
use crate::symbols::{LoadedImage, Probe, Role, Symbols, role};

/// Bytes of an entry: a pointer to the handler, and how the call is recorded.
const ENTRY: u64 = 16;
/// Calls between the handler and a function that is looked at.
const DEEPEST: usize = 4;
/// Functions that are looked at.
const MOST_FUNCTIONS: usize = 256;
/// Bytes of a function that is looked at.
const MOST_CODE: u64 = 64 << 10;
/// Candidates that are named.
const MOST: usize = 6;

/// The functions that may have made the error that a system call ended with, with their source lines, nearest to its
/// handler first. Empty without an image of this workspace's kernel.
pub(super) fn makers(symbols: &Symbols, nr: i64, errno: Errno) -> Vec<String> {
    let Some(handler) = handler(symbols, nr) else { return Vec::new() };
    let mut queue = VecDeque::from([(handler, 0)]);
    let mut seen = BTreeSet::from([handler]);
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    while let Some((function, depth)) = queue.pop_front() {
        for reference in code_of(symbols, function) {
            match reference {
                Reference::Constant { at, value } if is_error(value, errno) => {
                    let new = maker(symbols, at).filter(|(name, _)| !found.iter().any(|(known, _)| known == name));
                    found.extend(new);
                }
                Reference::Call { target, .. }
                    if depth < DEEPEST
                        && seen.len() < MOST_FUNCTIONS
                        && is_suspect(symbols, target)
                        && seen.insert(target) =>
                {
                    queue.push_back((target, depth + 1));
                }
                Reference::Constant { .. } | Reference::Call { .. } => {}
            }
        }
        if found.len() >= MOST {
            break;
        }
    }
    let in_words = |(name, place)| match place {
        Some(place) => format!("{name} ({place})"),
        None => name,
    };
    found.into_iter().take(MOST).map(in_words).collect()
}

/// Run-time address of the function that answers a system call.
fn handler(symbols: &Symbols, nr: i64) -> Option<u64> {
    let offset = u64::try_from(nr).ok()?.checked_mul(ENTRY)?;
    let images = symbols.loaded().iter().filter(|loaded| loaded.pid.is_none());
    images.into_iter().find_map(|loaded| {
        let (table, size) = loaded.image.find_symbol(TABLE)?;
        let mut entry = [0; ENTRY as usize];
        let whole = offset + ENTRY <= size && loaded.image.read(table + offset, &mut entry) == entry.len();
        let (words, _) = entry.as_chunks::<8>();
        let pointer = words.iter().map(|word| u64::from_le_bytes(*word)).find(|word| is_code(loaded, *word));
        // The file has the address before the kernel moves itself.
        pointer.filter(|_| whole).map(|link| link.wrapping_add(loaded.bias))
    })
}

fn is_code(loaded: &LoadedImage, link: u64) -> bool {
    loaded.image.is_code(link)
}

fn code_of(symbols: &Symbols, function: u64) -> Vec<Reference> {
    let location = symbols.resolve(function, None, Probe::Exact);
    let Some(symbol) = location.symbol.filter(|symbol| symbol.offset == 0) else { return Vec::new() };
    let mut bytes = vec![0; symbol.size.min(MOST_CODE) as usize];
    let found = symbols.read(function, None, &mut bytes);
    references(&bytes[..found], function)
}

/// Whether a function may be to blame: locks, allocators and the language's library make no errors of their own.
fn is_suspect(symbols: &Symbols, function: u64) -> bool {
    let location = symbols.resolve(function, None, Probe::Exact);
    location.function().is_some_and(|name| role(name) == Role::Suspect || name.contains("FnOnce"))
}

/// Whether a constant is an error: alone, negative as the result of a call, or behind the tag of a `Result`.
fn is_error(value: u64, errno: Errno) -> bool {
    let number = u64::from(errno.number());
    let negative = errno.to_result();
    value == number
        || value as i64 == negative
        || value == u64::from(negative as i32 as u32)
        || (value >> 16 == number && value & 0xffff <= 1)
}

/// The function of the code at an address, and `file:line` where they are known; the innermost that is not of the
/// library.
fn maker(symbols: &Symbols, at: u64) -> Option<(String, Option<String>)> {
    let location = symbols.resolve(at, None, Probe::Exact);
    let telling = location
        .frames
        .iter()
        .find(|frame| !frame.machinery && frame.function.as_deref().is_some_and(|name| role(name) == Role::Suspect));
    let Some(frame) = telling else { return location.function().map(|name| (name.to_string(), None)) };
    // Line 0 is code that the compiler made without one.
    let line = frame.line.filter(|line| *line != 0);
    let place = frame.file.as_deref().zip(line).map(|(file, line)| format!("{file}:{line}"));
    Some((frame.function.as_deref()?.to_owned(), place))
}
