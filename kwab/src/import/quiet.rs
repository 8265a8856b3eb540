//! Tells the lines of console text that no reader has a use for, at the speed of one look at each byte.
//!
//! Most of a log is such lines. Every reader of console text says which texts a line must hold to mean anything to it
//! (its `needles`). Of each set of texts four bytes are chosen, those that the log itself has had least often so far,
//! and a line that has none of the chosen ones is only recorded. So is one that has some by accident: the sets that its
//! four bytes were chosen for are searched for whole. Lines with control characters besides tabs are never quiet.
//! Builds with debug assertions ask all readers about each quiet line.

use std::collections::HashMap;

use memchr::memmem::Finder;

use super::reports::Recogniser;
use super::{boot, console, text};

/// Bytes of text that go by before four bytes are chosen.
const SAMPLE: usize = if cfg!(debug_assertions) { 4 << 10 } else { 256 << 10 };
/// Four bytes are told apart by so many bits of their hash.
const BITS: u32 = 15;
/// Length of what is looked up.
const GRAM: usize = 4;
/// A text is found by two of its grams side by side: one of them stands at an even position of the line.
const PAIR: usize = GRAM + 1;

/// Looks for the texts of all readers.
#[derive(Debug)]
pub(super) enum Quiet {
    /// Counts what the log holds.
    Sampling { bytes: usize, counts: Counts },
    /// Sorts lines by the texts that the sieve finds in them.
    Sorting(Sieve),
}

impl Default for Quiet {
    fn default() -> Self {
        Self::Sampling { bytes: 0, counts: Counts::default() }
    }
}

/// How often a log has had each four bytes, by bucket, and each byte.
#[derive(Debug)]
pub(super) struct Counts {
    grams: Vec<u32>,
    bytes: Vec<u32>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { grams: vec![0; 1 << BITS], bytes: vec![0; 256] }
    }
}

impl Counts {
    fn add(&mut self, line: &[u8]) {
        line.windows(GRAM).for_each(|gram| self.grams[bucket(gram)] += 1);
        line.iter().for_each(|byte| self.bytes[usize::from(*byte)] += 1);
    }
}

impl Quiet {
    /// Whether a line can mean nothing to any reader, if none of them is in the middle of something.
    #[inline]
    pub(super) fn is_quiet(&mut self, line: &[u8], recogniser: &Recogniser) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self {
            Self::Sampling { bytes, counts } => {
                *bytes += line.len();
                counts.add(line);
                if *bytes >= SAMPLE {
                    let sieve = Sieve::new(needles(recogniser), counts);
                    *self = Self::Sorting(sieve);
                }
                false
            }
            Self::Sorting(sieve) => sieve.holds_none(line) && !Recogniser::is_wrapped(line) && is_plain(line),
        }
    }
}

/// The sets of texts of all readers.
fn needles(recogniser: &Recogniser) -> impl Iterator<Item = Vec<Vec<u8>>> {
    let others = text::needles().chain(console::NEEDLES.iter().copied()).chain(boot::NEEDLES.iter().copied());
    recogniser.needles().chain(others.map(|text| vec![text.to_vec()]))
}

/// Four bytes of each set.
#[derive(Debug)]
pub(super) struct Sieve {
    /// One for the buckets of the chosen four bytes.
    chosen: Box<[u8; 1 << BITS]>,
    /// The sets that a bucket was chosen for: all texts of each, in lower case.
    sets: HashMap<usize, Vec<Vec<Finder<'static>>>>,
    /// The line that is searched for whole sets, in lower case.
    lower: Vec<u8>,
    /// Sets of which no text is as long as two grams side by side.
    short: Vec<Vec<Finder<'static>>>,
    /// The rarest byte of each of these sets, once.
    marks: Vec<u8>,
    /// A set has no text at all: every line may be meant.
    open: bool,
}

impl Sieve {
    fn new(sets: impl Iterator<Item = Vec<Vec<u8>>>, counts: &Counts) -> Self {
        let mut sieve = Self {
            chosen: Box::new([0; 1 << BITS]),
            sets: HashMap::new(),
            lower: Vec::new(),
            short: Vec::new(),
            marks: Vec::new(),
            open: false,
        };
        for set in sets {
            let pairs = set.iter().flat_map(|text| text.windows(PAIR));
            let pairs = pairs.map(|pair| [bucket(&pair[..GRAM]), bucket(&pair[1..])]);
            let cost = |pair: &[usize; 2]| pair.iter().map(|bucket| u64::from(counts.grams[*bucket])).sum::<u64>();
            let rarest = set.iter().flatten().copied().min_by_key(|byte| counts.bytes[usize::from(*byte)]);
            match (pairs.min_by_key(cost), rarest) {
                (Some(pair), _) => {
                    let whole = set.iter().map(|text| Finder::new(&text.to_ascii_lowercase()).into_owned());
                    let whole: Vec<_> = whole.collect();
                    for bucket in pair {
                        sieve.chosen[bucket] = 1;
                        sieve.sets.entry(bucket).or_default().push(whole.clone());
                    }
                }
                (None, Some(rarest)) => {
                    sieve.short.push(set.iter().map(|text| Finder::new(text).into_owned()).collect());
                    sieve.marks.push(rarest);
                }
                (None, None) => sieve.open = true,
            }
        }
        sieve.marks.sort_unstable();
        sieve.marks.dedup();
        sieve
    }

    /// Whether a line has nothing of any set.
    #[inline]
    fn holds_none(&mut self, line: &[u8]) -> bool {
        // Without a branch per position: lines are short, and most are quiet.
        let (eights, _) = line.as_chunks::<8>();
        let mut found = 0;
        let mut last = 0;
        for eight in eights {
            // The grams that lie across two chunks take the end of the one before.
            let now = u64::from_le_bytes(*eight);
            let across = last >> 48 | now << 16;
            for word in [across, now, now >> 16, now >> 32] {
                found |= self.chosen[bucket_of(word as u32)];
            }
            last = now;
        }
        let rest = line.get((eights.len() * 8).saturating_sub(2)..).unwrap_or_default();
        for gram in rest.windows(GRAM).step_by(2) {
            found |= self.chosen[bucket(gram)];
        }
        !self.open
            && (found == 0 || self.completes_none(line))
            && (self.has_no_mark(line)
                || !self.short.iter().any(|set| set.iter().all(|text| text.find(line).is_some())))
    }

    /// Whether a line has the rarest byte of none of the short sets.
    fn has_no_mark(&self, line: &[u8]) -> bool {
        self.marks.chunks(3).all(|marks| match *marks {
            [one, two, three] => memchr::memchr3(one, two, three, line).is_none(),
            [one, two] => memchr::memchr2(one, two, line).is_none(),
            [one] => memchr::memchr(one, line).is_none(),
            _ => true,
        })
    }

    /// Whether a line that has chosen four bytes has the whole of none of their sets, in upper or lower case.
    fn completes_none(&mut self, line: &[u8]) -> bool {
        let Self { chosen, sets, lower, .. } = self;
        let mut lowered = false;
        for gram in line.windows(GRAM).step_by(2) {
            let bucket = bucket(gram);
            if chosen[bucket] == 0 {
                continue;
            }
            if !std::mem::replace(&mut lowered, true) {
                lower.clear();
                lower.extend(line.iter().map(u8::to_ascii_lowercase));
            }
            let Some(sets) = sets.get(&bucket) else { continue };
            if sets.iter().any(|set| set.iter().all(|text| text.find(lower).is_some())) {
                return false;
            }
        }
        true
    }
}

/// The bucket of four bytes, the same for upper and lower case.
#[inline(always)]
fn bucket(gram: &[u8]) -> usize {
    bucket_of(u32::from_le_bytes([gram[0], gram[1], gram[2], gram[3]]))
}

#[inline(always)]
fn bucket_of(gram: u32) -> usize {
    ((gram | 0x2020_2020).wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

/// Whether a line has no control characters. Without a branch per byte, so that many bytes are looked at at once.
#[inline]
fn is_plain(line: &[u8]) -> bool {
    line.iter().fold(0, |found, byte| found | u8::from(*byte < 0x20 && *byte != b'\t') | u8::from(*byte == 0x7f)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that has seen enough of ordinary lines.
    fn sorting(recogniser: &Recogniser) -> Quiet {
        let mut quiet = Quiet::default();
        while let Quiet::Sampling { .. } = quiet {
            assert!(!quiet.is_quiet(b"pci 0000:00:01.0: [8086:7000] type 00 class 0x060100", recogniser));
        }
        quiet
    }

    #[test]
    fn ordinary_lines_are_quiet_and_those_of_any_reader_are_not() {
        let recogniser = Recogniser::new();
        let mut quiet = sorting(&recogniser);
        let mut is_quiet = |line: &str| quiet.is_quiet(line.as_bytes(), &recogniser);
        for line in ["", "ok", "a\tb", "[    1.312054] pci 0000:00:01.0: [8086:7000] type 00 class 0x060100\r"] {
            assert!(is_quiet(line), "{line}");
        }
        for line in [
            "[    0.000000] Linux version 6.1.0",
            "kernel PANIC",
            "BUG: unable to handle page fault for address: 0",
            "invalid opcode: 0000 [#1]",
            "init[1]: segfault at 0 ip 0 sp 0 error 4",
            "[PANIC] CPU=0 at x.rs:1",
            "Out of memory: killed process 3 (tail), 84688 KiB resident",
            "smp: Brought up 1 node, 2 CPUs",
            "&lt;1&gt;x",
            "\x1b[0m",
            "a\rb",
            "{\"MESSAGE\":\"x\"}",
            "Run /init as init process",
        ] {
            assert!(!is_quiet(line), "{line}");
        }
    }

    #[test]
    fn the_rarest_four_bytes_of_a_set_are_chosen_and_short_texts_are_searched() {
        let mut counts = Counts::default();
        counts.grams[bucket(b"page")] = 9;
        counts.grams[bucket(b"aged")] = 9;
        let set = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
        let sets = [set(&["paged", "losts"]), set(&["[#"]), set(&["@", " at "])];
        let mut sieve = Sieve::new(sets.into_iter(), &counts);
        assert!(sieve.holds_none(b"a paged page") && !sieve.holds_none(b"x [#1]"));
        assert!(sieve.holds_none(b"x at y") && sieve.holds_none(b"@ y") && !sieve.holds_none(b"@ at y"));
        for at in 0..40 {
            let half = [&vec![b'x'; at][..], b" LOSTS "].concat();
            assert!(sieve.holds_none(&half), "one text of two, at {at}");
            let line = [b"Paged", &half[..]].concat();
            assert!(!sieve.holds_none(&line), "at {at}");
            assert!(!sieve.holds_none(line.trim_ascii_end()), "at {at}, at the end");
        }
        let mut open = Sieve::new([set(&[])].into_iter(), &counts);
        assert!(!open.holds_none(b"anything"), "a template without text may mean any line");
    }
}
