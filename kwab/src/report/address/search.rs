//! Finds bytes in all captured memory, streamed: a section of the dump is in memory at a time.
//!
//! Where a dump holds physical memory, that is what is searched, in order of address; what was captured by virtual
//! address is a part of it. Otherwise the captured pieces are searched one by one.

use std::ops::ControlFlow;

use memchr::memmem::Finder;
use schemars::JsonSchema;
use serde::Serialize;

use super::{digits, hex};
use crate::analysis::text;
use crate::memory::{Ram, Reverse, spaces};
use crate::model::Case;
use crate::symbols::{Probe, Symbols, short};

/// The version of [`SearchReport`]'s JSON form.
pub const SCHEMA: u32 = 1;
/// The longest pattern.
pub const LONGEST: usize = 4096;
/// Bytes shown before and behind a hit.
const CONTEXT: usize = 16;
/// Virtual addresses of a hit that are shown.
const MOST_ADDRESSES: usize = 4;

/// What to search for.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The bytes; not all zero.
    pub bytes: Vec<u8>,
    /// Hits begin at multiples of this.
    pub align: u64,
}

/// Why a pattern cannot be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It has no bytes.
    #[error("the pattern is empty")]
    Empty,
    /// It is longer than [`LONGEST`].
    #[error("the pattern has {0} bytes; at most {LONGEST} can be searched for")]
    TooLong(usize),
    /// It is everywhere.
    #[error("the pattern holds only zeros, which most memory does")]
    Zeros,
}

impl Pattern {
    /// A pattern whose hits begin at multiples of `align`.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new(bytes: Vec<u8>, align: u64) -> Result<Self, PatternError> {
        match bytes.len() {
            0 => Err(PatternError::Empty),
            length if length > LONGEST => Err(PatternError::TooLong(length)),
            _ if bytes.iter().all(|byte| *byte == 0) => Err(PatternError::Zeros),
            _ => Ok(Self { bytes, align: align.max(1) }),
        }
    }
}

/// Where the pattern is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hit {
    /// Physical address, hexadecimal.
    pub physical: Option<String>,
    /// Virtual addresses, hexadecimal, each with the address space or process that has it there.
    pub addresses: Vec<Address>,
    /// The symbol there, with its offset.
    pub symbol: Option<String>,
    /// What the captured piece is, in the words of the dump.
    pub piece: Option<String>,
    /// Up to 16 bytes before it, hexadecimal.
    pub before: String,
    /// The bytes that follow it, up to 16, hexadecimal.
    pub behind: String,
}

/// A virtual address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Address {
    /// The address, hexadecimal.
    pub address: String,
    /// Who has it there.
    pub space: String,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchReport {
    /// Version of this form.
    pub schema: u32,
    /// Name of the dump as the user gave it.
    pub file: String,
    /// The pattern, hexadecimal.
    pub pattern: String,
    /// Bytes that were searched, zeros included.
    pub searched: u64,
    /// Number of hits, listed or not.
    pub count: u64,
    /// The first of them.
    pub hits: Vec<Hit>,
    /// Sections of memory that could not be read.
    pub lost: usize,
}

/// Looks at stretches of memory, one behind the other.
struct Search<'p> {
    pattern: &'p Pattern,
    finder: Finder<'p>,
    /// The end of what was looked at, at most as long as the pattern, and the address behind it.
    carried: Vec<u8>,
    end: u64,
    searched: u64,
    count: u64,
    found: Vec<u64>,
    most: usize,
}

impl<'p> Search<'p> {
    fn new(pattern: &'p Pattern, most: usize) -> Self {
        let finder = Finder::new(&pattern.bytes);
        Self { pattern, finder, carried: Vec::new(), end: 0, searched: 0, count: 0, found: Vec::new(), most }
    }

    fn feed(&mut self, start: u64, bytes: &[u8]) {
        let keep = self.pattern.bytes.len() - 1;
        if start != self.end {
            self.carried.clear();
        }
        self.searched += bytes.len() as u64;
        // What begins before this stretch and ends in it.
        let carried = self.carried.len();
        let mut seam = std::mem::take(&mut self.carried);
        seam.extend_from_slice(&bytes[..bytes.len().min(keep)]);
        self.look(start.wrapping_sub(carried as u64), &seam, carried);
        self.look(start, bytes, usize::MAX);
        seam.truncate(carried);
        if bytes.len() >= keep {
            seam.clear();
        }
        seam.extend_from_slice(&bytes[bytes.len() - bytes.len().min(keep)..]);
        let surplus = seam.len() - seam.len().min(keep);
        seam.drain(..surplus);
        (self.carried, self.end) = (seam, start.wrapping_add(bytes.len() as u64));
    }

    /// Zeros, of which only those near their ends can be part of a hit.
    fn feed_zeros(&mut self, start: u64, count: u64) {
        let near = (self.pattern.bytes.len() as u64).min(count);
        let zeros = vec![0; near as usize];
        self.feed(start, &zeros);
        if count > near {
            self.searched += count - near;
            self.carried = vec![0; self.pattern.bytes.len() - 1];
            self.end = start.wrapping_add(count);
        }
    }

    /// The hits in `bytes` that begin before offset `until`.
    fn look(&mut self, start: u64, bytes: &[u8], until: usize) {
        let mut at = 0;
        while let Some(found) = bytes.get(at..).and_then(|rest| self.finder.find(rest)) {
            let offset = at + found;
            if offset >= until {
                break;
            }
            let addr = start.wrapping_add(offset as u64);
            if addr.is_multiple_of(self.pattern.align) {
                self.count += 1;
                if self.found.len() < self.most {
                    self.found.push(addr);
                }
            }
            at = offset + 1;
        }
    }
}

/// Searches all memory; the first `most` hits are listed, all are counted.
#[must_use]
pub fn search(
    case: &Case<'_>,
    ram: &Ram<'_>,
    symbols: &Symbols,
    pattern: &Pattern,
    most: usize,
    file: &str,
) -> SearchReport {
    let mut report = SearchReport {
        schema: SCHEMA,
        file: file.to_owned(),
        pattern: digits(&pattern.bytes),
        searched: 0,
        count: 0,
        hits: Vec::new(),
        lost: 0,
    };
    if ram.is_empty() {
        in_pieces(&mut report, case, symbols, pattern, most);
        return report;
    }
    let mut search = Search::new(pattern, most);
    report.lost = ram.each(&mut |piece| {
        search.feed(piece.start, piece.bytes);
        search.feed_zeros(piece.start.wrapping_add(piece.bytes.len() as u64), piece.zeros);
        ControlFlow::Continue(())
    });
    (report.searched, report.count) = (search.searched, search.count);
    if search.found.is_empty() {
        return report;
    }
    let spaces = spaces(case);
    let reverse = Reverse::of(ram, &spaces);
    report.hits = search.found.iter().map(|at| of_physical(ram, symbols, &reverse, &spaces, pattern, *at)).collect();
    report
}

fn of_physical(
    ram: &Ram<'_>,
    symbols: &Symbols,
    reverse: &Reverse,
    spaces: &[crate::memory::Space],
    pattern: &Pattern,
    at: u64,
) -> Hit {
    let mapped: Vec<_> = reverse.mapped(at).take(4 * MOST_ADDRESSES).collect();
    let pid = |space: usize| spaces.get(space).and_then(|space| space.pid);
    let named = mapped.iter().find_map(|(addr, run)| short(&symbols.resolve(*addr, pid(run.space), Probe::Exact)));
    let address = |(addr, run): &(u64, &crate::memory::Mapped)| Address {
        address: hex(*addr),
        space: spaces.get(run.space).map(|space| space.name.clone()).unwrap_or_default(),
    };
    let mut before = vec![0; CONTEXT.min(usize::try_from(at).unwrap_or(CONTEXT))];
    let missing = before.len() - known_before(ram, at, &mut before);
    let mut behind = vec![0; CONTEXT];
    let found = ram.read(at.wrapping_add(pattern.bytes.len() as u64), &mut behind);
    Hit {
        physical: Some(hex(at)),
        addresses: mapped.iter().take(MOST_ADDRESSES).map(address).collect(),
        symbol: named,
        piece: None,
        before: digits(&before[missing..]),
        behind: digits(&behind[..found]),
    }
}

/// Fills the end of `out` with the bytes before an address; how many there are.
fn known_before(ram: &Ram<'_>, at: u64, out: &mut [u8]) -> usize {
    let length = out.len();
    (0..length)
        .find(|skip| ram.read(at - (length - skip) as u64, &mut out[*skip..]) == length - skip)
        .map_or(0, |skip| length - skip)
}

fn in_pieces(report: &mut SearchReport, case: &Case<'_>, symbols: &Symbols, pattern: &Pattern, most: usize) {
    for memory in &case.memory {
        let (Some(start), Some(bytes)) = (memory.vaddr, memory.bytes) else { continue };
        let mut search = Search::new(pattern, most - report.hits.len());
        search.feed(start, bytes);
        report.searched += search.searched;
        report.count += search.count;
        for addr in search.found {
            let at = usize::try_from(addr.wrapping_sub(start)).unwrap_or(0);
            let behind = bytes.get(at + pattern.bytes.len()..).unwrap_or_default();
            let before = bytes.get(at.saturating_sub(CONTEXT)..at).unwrap_or_default();
            let kind = memory.kind.and_then(kwab_format::record::MemoryKind::name).unwrap_or("memory");
            let label = memory.label.map(|label| format!(", {}", text(Some(label)))).unwrap_or_default();
            let pid = memory.pid.filter(|_| addr >> 63 == 0);
            let space = pid.map_or_else(|| "kernel".to_owned(), |pid| format!("process {pid}"));
            report.hits.push(Hit {
                physical: None,
                addresses: vec![Address { address: hex(addr), space }],
                symbol: short(&symbols.resolve(addr, pid, Probe::Exact)),
                piece: Some(format!("{kind}{label}")),
                before: digits(before),
                behind: digits(&behind[..behind.len().min(CONTEXT)]),
            });
        }
    }
}
